"""Writes reference.json: what Hugging Face tokenizers (0.23.3) does with variants of the test tokenizer.

usage: make_reference.py TOKENIZER_JSON OUT

Each variant replaces top-level keys of tokenizer.json (a key "model.x" replaces one key of the model) and lists texts with
the ids the reference gives. The six-step pre-tokenizer is written from the description of the DeepSeek-V2 family; nothing
here was compared with a published file.
"""
import copy, json, random, sys
from tokenizers import Tokenizer

base = json.load(open(sys.argv[1], encoding="utf-8"))
split = lambda r, b="Isolated", inv=False: {"type": "Split", "pattern": {"Regex": r}, "behavior": b, "invert": inv}
literal = lambda s, b="Isolated", inv=False: {"type": "Split", "pattern": {"String": s}, "behavior": b, "invert": inv}
bytelevel = lambda prefix=False, rx=False: {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": rx}
seq = lambda *p: {"type": "Sequence", "pretokenizers": list(p)}
added = lambda i, c, **k: {"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False,
                           "normalized": False, "special": False, **k}

LETTERS = ("A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ\u1f5f-\u1f7dᾀ-ᾴᾶ-ᾼ"
           "ℂℇℊ-ℓℕℙ-ℝℤℨℬ-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")
SIX = seq(split("[\r\n]"), split("\\s?[" + LETTERS + "]+"), split("\\s?[!-/:-~！-／：-～‘-‟　-。]+"), split("\\s+$"),
          split("[一-龥ࠀ-一가-퟿]+"), {"type": "Digits", "individual_digits": True}, bytelevel())

TEXTS = ["", " ", "Hello, world!", "  two  spaces  ", "a b  c   d\n\n e \n  ", "trailing   ", "line one  \nline two\t\r\nend \n", "x1y22z333 2024-01-31 3.14",
         "你好，世界。中文和English混合text123测试", "こんにちは、カタカナ", "안녕하세요 세계", "Привет, мир! Ελληνικά café naïve", "e\u0301 a\u030a\u0323 \u1e69 s\u0323\u0307",
         "I'll don't we've THEY'RE", "!!! ??? ... (a[b]{c}) «q» “s” …", "a\u00a0b\u2003c\u3000d\u0085e", "null\x00 bell\x07 zero\u200bw\ufeff", "😀👍🏽 👨\u200d👩 🇺🇸",
         "١٢٣ ²³ ½ Ⅷ", "if (a<b && c>=d) { return x[i]->y; } // c", "foo--bar_baz", "--a--", "a--", "--", "a----b", "<t> <t>x x<t>  <t>  y<t>\n", "<think>ok</think>",
         "<｜begin▁of▁sentence｜>hi <｜User｜> x", "word<w>word <w> word, <w>! <w><w> é<w> _<w> 1<w>", "<n>cafe\u0301<n>", "ﬁ Ｆｕｌｌ １２", "the the the the", "thethethe" * 12]
rng = random.Random(7)
alphabet = list("abcXYZ  \t\n\r0123456789.,;:!?'\"()[]{}<>-_/\\") + list("你好世界のカ가나éßЖαı٣Ⅷ½\u0301\u00a0\u3000\u200b\u200d😀—…“｡、") + ["the ", " and", "<t>", "<w>", "<n>", "\r\n", "  "]
TEXTS += ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 40))) for _ in range(60)]

T = base["added_tokens"]
variants = [
    ("three-step pre-tokenizer", {}),
    ("six-step pre-tokenizer", {"pre_tokenizer": SIX}),
    ("byte level with its own regex", {"pre_tokenizer": bytelevel(rx=True)}),
    ("byte level with prefix space", {"pre_tokenizer": seq(split("[\r\n]+"), bytelevel(prefix=True))}),
    ("removed", {"pre_tokenizer": seq(split("\\s+", "Removed"), bytelevel())}),
    ("removed inverted", {"pre_tokenizer": seq(split("\\p{L}+|\\p{N}", "Removed", True), bytelevel())}),
    ("merged with previous", {"pre_tokenizer": seq(split("-", "MergedWithPrevious"), bytelevel())}),
    ("merged with next", {"pre_tokenizer": seq(split("[- ]", "MergedWithNext"), bytelevel())}),
    ("merged with next inverted", {"pre_tokenizer": seq(split("[- ]", "MergedWithNext", True), bytelevel())}),
    ("contiguous", {"pre_tokenizer": seq(split("[-a ]", "Contiguous"), bytelevel())}),
    ("contiguous inverted", {"pre_tokenizer": seq(split("[-a ]", "Contiguous", True), bytelevel())}),
    ("literal isolated", {"pre_tokenizer": seq(literal("--"), bytelevel())}),
    ("literal previous", {"pre_tokenizer": seq(literal(" ", "MergedWithPrevious"), bytelevel())}),
    ("line anchors and dot", {"pre_tokenizer": seq(split("^.|\\s+$|.\\b"), bytelevel())}),
    ("empty matches", {"pre_tokenizer": seq(split("x*"), bytelevel())}),
    ("case-folded contractions", {"pre_tokenizer": seq(split("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"), bytelevel())}),
    ("digits together and punctuation", {"pre_tokenizer": seq({"type": "Digits", "individual_digits": False}, {"type": "Punctuation", "behavior": "Contiguous"}, bytelevel())}),
    ("NFC", {"normalizer": {"type": "NFC"}, "added_tokens": T + [added(2048, "<n>", normalized=True), added(2049, "cafe\u0301", normalized=True)]}),
    ("strip sides", {"added_tokens": T + [added(2048, "<t>", lstrip=True), added(2049, "<n>", rstrip=True), added(2050, "<w>", lstrip=True, rstrip=True)]}),
    ("single word", {"added_tokens": T + [added(2048, "<w>", single_word=True), added(2049, "word", single_word=True), added(936, "the", single_word=True)]}),
    ("two passes, longest", {"added_tokens": T + [added(2048, "<t> ", normalized=True), added(2049, "<t>"), added(2050, "<t> <t>"), added(2051, "<n", normalized=True), added(2052, "<n>", normalized=True)]}),
    ("ignore merges", {"model.ignore_merges": True}),
    ("merges as pairs", {"model.merges": "pairs"}),
]
out = []
for name, patch in variants:
    d = copy.deepcopy(base)
    for k, v in patch.items():
        if k == "model.merges":
            d["model"]["merges"] = [m.split(" ") for m in d["model"]["merges"]]
        elif k.startswith("model."):
            d["model"][k[6:]] = v
        else:
            d[k] = v
    t = Tokenizer.from_str(json.dumps(d))
    out.append({"name": name, "patch": patch, "cases": [{"text": s, "ids": t.encode(s, add_special_tokens=False).ids} for s in TEXTS]})
json.dump({"source": "Hugging Face tokenizers 0.23.3, through make_reference.py", "variants": out}, open(sys.argv[2], "w", encoding="utf-8"), ensure_ascii=True, separators=(",", ":"))
