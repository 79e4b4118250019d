"""Print llama.cpp's opinion of the next token of prompts, through the bindings of llama-cpp-python.

Reads one JSON array of prompts (token ids) from standard input. Writes a JSON array with, for each, the most probable tokens
and their logits, best first: [[[token, logit], ...], ...]

usage: LLAMA_CPP_LIB_PATH=BUILD/bin PYTHONPATH=SOURCES top_tokens.py MODEL.gguf THREADS < prompts.json
"""

import json
import sys

import llama_cpp
import numpy as np

SHOWN = 64


def main(path, threads):
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    llama_cpp.llama_backend_init()
    settings = llama_cpp.llama_model_default_params()
    settings.use_extra_bufts = False  # as compare.py measures: no repacked weights
    model = llama_cpp.llama_model_load_from_file(path.encode(), settings)
    if not model:
        sys.exit(f"{path}: llama.cpp cannot load it")
    vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    answers = []
    for prompt in json.load(sys.stdin):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch = len(prompt) + 8, len(prompt)
        params.n_threads = params.n_threads_batch = threads
        context = llama_cpp.llama_init_from_model(model, params)
        tokens = (llama_cpp.llama_token * len(prompt))(*prompt)
        if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(prompt))) != 0:
            sys.exit("llama_decode failed")
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (vocabulary,))
        best = np.argsort(-logits, kind="stable")[:SHOWN]
        answers.append([[int(t), float(logits[t])] for t in best])
        llama_cpp.llama_free(context)
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]))
