"""Measure moectl against llama.cpp on the same weights, in turn, and print the ratios of medians.

    test/bench/llamacpp/compare.py --moectl bin/moectl --work /tmp/peer

Everything goes into --work, some 15 GB with the default shape, and is used again by the next run:

  1. venv, sources: a virtual environment, and llama.cpp as it comes with the Python package llama-cpp-python, built from
     source with its defaults for this machine (GGML_NATIVE). Needs Python 3.11.4, make, a C++ compiler, network for PyPI.
  2. model: a checkpoint of random weights (moectl synth), unless --model names one in bfloat16; its int8 form (moectl quantize).
  3. bf16.gguf, q8_0.gguf: the same weights for llama.cpp (to_gguf.py, llama-quantize).

Then it checks that both find the same next token of some prompts, and measures, for each number of threads: moectl in
bfloat16 against bf16, and in w8a8 against Q8_0; prefill of --prompt tokens; decode of one sequence and of several. A round
runs all pairs, moectl then llama.cpp (bench engine, llama-batched-bench). The first round only warms up. llama.cpp runs with
and without flash attention in every round, and each of its figures is the better of the two. Prefill is that of one prompt.
It runs without repacked weights (--no-repack): on processors with AMX this version ends in an assertion or a segmentation
fault when it repacks the 8-bit weights of this model, and on other x86 processors it has no repacked form of them.

On a machine with other work the ratios of medians still mean something, the figures themselves do not.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tarfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "0.3.36"  # of llama-cpp-python
PACKAGES = ["numpy", "typing_extensions", "diskcache", "jinja2", "cmake"]
PAIRS = [("bfloat16", "bf16"), ("w8a8", "q8_0")]  # moectl's --dtype, llama.cpp's file


def run(*command, **more):
    """Run a command, show it when it fails, and return its standard output."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


class Peer:
    """llama.cpp in a folder: its Python, its tools, its bindings."""

    def __init__(self, work, jobs):
        self.python = work / "venv/bin/python"
        self.sources = work / f"llama_cpp_python-{VERSION}"
        self.build = work / "build"
        llama = self.sources / "vendor/llama.cpp"
        if not self.python.exists():
            venv.create(work / "venv", with_pip=True)
            run(self.python, "-m", "pip", "install", "--quiet", *PACKAGES)
        if not self.sources.exists():
            run(self.python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python", "-d", work, f"llama-cpp-python=={VERSION}")
            with tarfile.open(work / f"llama_cpp_python-{VERSION}.tar.gz") as archive:
                archive.extractall(work, filter="data")
            run(self.python, "-m", "pip", "install", "--quiet", llama / "gguf-py")
        targets = ["llama", "llama-batched-bench", "llama-quantize"]
        if not all((self.build / "bin" / t).exists() for t in targets[1:]):
            cmake = work / "venv/bin/cmake"
            parts = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("EXAMPLES", "SERVER", "TESTS")]
            run(cmake, "-S", llama, "-B", self.build, "-DCMAKE_BUILD_TYPE=Release", *parts)
            run(cmake, "--build", self.build, "-j", jobs, "--target", *targets)

    def tool(self, name, *args):
        return run(self.build / "bin" / name, *args)

    def script(self, name, *args, **more):
        paths = {"LLAMA_CPP_LIB_PATH": str(self.build / "bin"), "PYTHONPATH": str(self.sources), "PYTHONDONTWRITEBYTECODE": "1"}
        return run(self.python, HERE / name, *args, env=os.environ | paths, **more)

    def speeds(self, file, threads, prompt, gen, sequences):
        """Return {sequences: (prefill, decode)} in tokens per second."""
        best = {}
        positions = max(sequences) * (prompt + gen)
        for flash in "on", "off":
            out = self.tool("llama-batched-bench", "-m", file, "-c", positions, "-b", 2048, "-ub", 512, "-t", threads, "-tb", threads, "-fa", flash, "--no-repack",
                            "-npp", prompt, "-ntg", gen, "-npl", ",".join(map(str, sequences)), "--output-format", "jsonl")
            for line in filter(lambda l: l.startswith("{"), out.splitlines()):
                r = json.loads(line)
                old = best.get(r["pl"], (0, 0))
                best[r["pl"]] = max(old[0], r["speed_pp"]), max(old[1], r["speed_tg"])
        return best


class Moerack:
    """moectl and the checkpoint in both forms."""

    def __init__(self, moectl, work, shape, model):
        self.moectl = moectl
        self.model = model or work / "model"
        if not self.model.exists():
            run(moectl, "synth", "--shape", shape, "--out", self.model)
        self.int8 = work / "model-w8a8"
        if not self.int8.exists():
            run(moectl, "quantize", "--model", self.model, "--out", self.int8)

    def where(self, dtype, threads):
        return "--model", self.int8 if dtype == "w8a8" else self.model, "--dtype", dtype, "--threads", threads, "--log-level", "error", "-o", "json"

    def speeds(self, dtype, threads, prompt, gen, sequences):
        """Return {sequences: (prefill, decode)} in tokens per second, and {sequences: share of the read bandwidth}."""
        out = json.loads(run(self.moectl, "bench", "engine", *self.where(dtype, threads), "--repeat", 1, "--prompt-len", prompt, "--gen-len", gen,
                             "--batch", ",".join(map(str, sequences))))
        speeds = {r["batch"]: (r["prefill_tokens_per_s"], r["decode_tokens_per_s"]) for r in out["results"]}
        return speeds, {r["batch"]: r["bandwidth_share"] for r in out["results"]}

    def next_tokens(self, dtype, threads, prompts):
        ids = [word for p in prompts for word in ("--prompt-ids", ",".join(map(str, p)))]
        out = run(self.moectl, "generate", *self.where(dtype, threads), "--temperature", 0, "--max-tokens", 1, "--ignore-eos", *ids)
        return [json.loads(line)["token_ids"][0] for line in out.splitlines()]


def same_tokens(ours, peer, files, threads, vocabulary):
    """Yield a line for each pair: how many of the prompts have the same most probable next token."""
    source = random.Random(1)
    prompts = [[source.randrange(vocabulary) for _ in range(n)] for n in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)]
    for dtype, quant in PAIRS:
        theirs = json.loads(peer.script("top_tokens.py", files[quant], threads, input=json.dumps(prompts)))
        mine = ours.next_tokens(dtype, threads, prompts)
        same, behind = 0, 0.0
        for token, best in zip(mine, theirs):
            same += token == best[0][0]
            behind = max(behind, best[0][1] - dict(map(tuple, best)).get(token, float("-inf")))
        line = f"{dtype} and {quant}: the same next token for {same} of {len(prompts)} prompts"
        if same < len(prompts):
            line += f"; by llama.cpp's logits the others are at most {behind:.3f} behind"
        yield line


def measure(ours, peer, files, args):
    """Return {(dtype, threads, what): (our figures, theirs)} and {(dtype, threads, what): shares of the bandwidth}, a figure a round."""
    figures, shares = {}, {}
    several = [(args.several_prompt, args.sequences), (args.prompt, [1])]
    for number in range(args.rounds + 1):
        for threads in args.threads:
            for dtype, quant in PAIRS:
                for prompt, sequences in several:
                    mine, share = ours.speeds(dtype, threads, prompt, args.gen, sequences)
                    theirs = peer.speeds(files[quant], threads, prompt, args.gen, sequences)
                    if number == 0:
                        continue
                    for n in sequences:
                        whats = [(f"decode, {n} sequences" if n > 1 else "decode, 1 sequence", 1)]
                        if n == 1:
                            whats.insert(0, (f"prefill of {prompt}", 0))
                        for what, i in whats:
                            a, b = figures.setdefault((dtype, threads, what), ([], []))
                            a.append(mine[n][i])
                            b.append(theirs[n][i])
                            if i == 1:
                                shares.setdefault((dtype, threads, what), []).append(share[n])
        print(f"round {number} of {args.rounds} done", file=sys.stderr)
    return figures, shares


def machine():
    """Return what is known of the processor."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        model = next(l.split(":")[1].strip() for l in lines if l.startswith("model name"))
        flags = next(l.split(":")[1].split() for l in lines if l.startswith("flags"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
    wide = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8", "amx_bf16") if f in flags]
    return f"{model}, {os.cpu_count()} threads, {' '.join(wide)}"


def table(figures, shares):
    """Yield the rows, in Markdown."""
    yield "| what | threads | moerack | llama.cpp | ratio | least … most | of the read bandwidth |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for key, (mine, theirs) in sorted(figures.items(), key=lambda item: (item[0][0], item[0][2], item[0][1])):
        dtype, threads, what = key
        each = [a / b for a, b in zip(mine, theirs)]
        a, b = statistics.median(mine), statistics.median(theirs)
        share = f"{100 * statistics.median(shares[key]):.0f} %" if key in shares else ""
        yield f"| {dtype} to {dict(PAIRS)[dtype]}: {what} | {threads} | {a:.1f} | {b:.1f} | {a / b:.2f} | {min(each):.2f} … {max(each):.2f} | {share} |"


def report(args, ours, peer, same, figures, shares):
    """Return the whole result, in Markdown."""
    config = json.loads((ours.model / "config.json").read_text())
    version = json.loads(run(args.moectl, "version", "-o", "json"))
    vendored = (peer.build / "CMakeCache.txt").read_text()
    native = "GGML_NATIVE:BOOL=ON" in vendored
    lines = [
        f"Machine: {machine()}; {platform.system()} {platform.release()}. Load before: {args.load:.1f}.",
        f"moectl {version['version']} {version['revision'][:12]} ({version['go_version']}); llama.cpp of llama-cpp-python {VERSION}{', native build' if native else ''}.",
        f"Model: {config['num_hidden_layers']} layers, hidden {config['hidden_size']}, {config['n_routed_experts']} experts, "
        f"vocabulary {config['vocab_size']}. Tokens per second, medians of {args.rounds} rounds; "
        f"several sequences have prompts of {args.several_prompt} tokens; {args.gen} tokens are decoded.",
        "", *(f"- {line}" for line in same), "", *table(figures, shares),
    ]
    return "\n".join(lines) + "\n"


def counts(text):
    return [int(n) for n in text.split(",")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--moectl", type=pathlib.Path, required=True, help="the command to measure")
    p.add_argument("--work", type=pathlib.Path, required=True, help="folder for everything that is made")
    p.add_argument("--model", type=pathlib.Path, help="a bfloat16 checkpoint instead of a random one")
    p.add_argument("--shape", default="v2lite-4l", help="of the random one")
    p.add_argument("--threads", type=counts, default=[1, 2], metavar="N,…")
    p.add_argument("--sequences", type=counts, default=[8, 16], metavar="N,…", help="decoded at once, beside 1")
    p.add_argument("--prompt", type=int, default=512, help="tokens")
    p.add_argument("--several-prompt", type=int, default=32, help="tokens of a prompt where several are decoded")
    p.add_argument("--gen", type=int, default=48, help="tokens to decode")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    p.add_argument("--markdown", type=pathlib.Path, metavar="FILE", help="write the result there too")
    args = p.parse_args()
    args.load = os.getloadavg()[0]
    args.moectl, args.work = args.moectl.resolve(), args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)

    peer = Peer(args.work, args.jobs)
    ours = Moerack(args.moectl, args.work, args.shape, args.model)
    files = {quant: args.work / f"{quant}.gguf" for _, quant in PAIRS}
    if not files["bf16"].exists():
        peer.script("to_gguf.py", ours.model, files["bf16"])
    if not files["q8_0"].exists():
        peer.tool("llama-quantize", files["bf16"], files["q8_0"], "q8_0", args.jobs)

    vocabulary = json.loads((ours.model / "config.json").read_text())["vocab_size"]
    same = list(same_tokens(ours, peer, files, max(args.threads), vocabulary))
    print("\n".join(same), file=sys.stderr)
    text = report(args, ours, peer, same, *measure(ours, peer, files, args))
    print(text)
    if args.markdown:
        args.markdown.write_text(text)


if __name__ == "__main__":
    main()
