"""The engine on the real model: sixteen requests on a pool too small for them."""

from paged_tutorial import PagedEngine, Tokenizer, check_invariants, load_smollm2

QUESTIONS = [
    "What is the capital of France?",
    "Name three fruits.",
    "What is two plus two?",
    "Say hello in Spanish.",
]


def test_sixteen_requests_on_a_small_pool_answer_as_if_alone():
    model, tokenizer = load_smollm2(), Tokenizer()
    prompts = [
        tokenizer.chat(question, system=system)
        for system in (None, "Answer briefly.", "You are a friendly teacher.", "Be exact.")
        for question in QUESTIONS
    ]
    engine = PagedEngine(model, 24, 16, tokenizer=tokenizer)
    completions = engine.generate(prompts, max_new_tokens=16)
    assert engine.metrics["preemptions"] > 0
    assert engine.metrics["evictions"] > 0
    check_invariants(engine.cache)
    for prompt, completion in zip(prompts, completions, strict=True):
        cold = PagedEngine(model, 24, 16, tokenizer=tokenizer)
        assert cold.generate([prompt], max_new_tokens=16)[0].tokens == completion.tokens
    assert completions[0].text == "The capital of France is Paris."


def test_text_streams_in_whole_characters():
    model, tokenizer = load_smollm2(), Tokenizer()
    engine = PagedEngine(model, 24, tokenizer=tokenizer)
    prompt = tokenizer.chat("What is the capital of France?")
    pieces = list(engine.stream(prompt, max_new_tokens=12))
    assert len(pieces) > 3
    assert "".join(pieces) == "The capital of France is Paris."
