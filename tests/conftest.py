"""Settings for all tests."""

from hypothesis import settings

# The same examples on every run, and no example fails for being slow.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")
