"""The exercises of chapter 1: what memory a text takes, and who wastes it."""

from .account import ACCOUNT
from .give_back import GIVE_BACK
from .how_many_start import HOW_MANY_START
from .token_bytes import TOKEN_BYTES

EXERCISES = (TOKEN_BYTES, ACCOUNT, HOW_MANY_START, GIVE_BACK)
