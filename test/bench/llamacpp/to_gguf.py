"""Write a DeepSeek checkpoint (bf16 safetensors) as a bf16 GGUF file for llama.cpp, as its own converter would.

llama.cpp's convert_hf_to_gguf.py needs PyTorch and a tokenizer that it knows. Here the weights are what matters: this needs
only the gguf package (which comes with llama.cpp) and writes no vocabulary, so that models are compared by token ids.
Keys, tensor names and number formats follow DeepseekV2Model and TextModel of that converter: norms and routers in float32,
experts of a layer as one tensor, kv_b_proj as attn_k_b (transposed) and attn_v_b for attention in absorbed form.

Two things differ on purpose: a model without a query bottleneck gets q_lora_rank 0, without which llama.cpp takes only models
of 26 or 27 layers for a V2-Lite; and there is no tokenizer.

usage: to_gguf.py MODEL_DIR OUT.gguf
"""

import json
import pathlib
import re
import sys

import gguf
import numpy as np

DTYPES = {"BF16": np.uint16, "F32": np.float32}
RAW = {"BF16": gguf.GGMLQuantizationType.BF16, "F32": gguf.GGMLQuantizationType.F32}


def read_tensors(directory):
    """Return the tensors of all safetensors files, mapped: name -> (dtype name, array)."""
    tensors = {}
    for path in sorted(directory.glob("*.safetensors")):
        with open(path, "rb") as f:
            header_len = int.from_bytes(f.read(8), "little")
            header = json.loads(f.read(header_len))
        header.pop("__metadata__", None)
        for name, t in header.items():
            if t["dtype"] not in DTYPES:
                sys.exit(f"{path.name}: {name}: dtype {t['dtype']}: only {', '.join(DTYPES)} are converted")
            data = np.memmap(path, DTYPES[t["dtype"]], "r", 8 + header_len + t["data_offsets"][0], tuple(t["shape"]))
            tensors[name] = (t["dtype"], data)
    if not tensors:
        sys.exit(f"{directory}: no safetensors files")
    return tensors


def write_keys(w, c):
    """Write the model's parameters. c is config.json."""
    w.add_name(c["model_type"])
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(1)  # MLA as attention with one shared head
    w.add_rope_freq_base(c["rope_theta"])
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_vocab_size(c["vocab_size"])
    w.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)

    w.add_q_lora_rank(c.get("q_lora_rank") or 0)
    w.add_kv_lora_rank(c["kv_lora_rank"])
    w.add_key_length(c["kv_lora_rank"] + c["qk_rope_head_dim"])
    w.add_value_length(c["kv_lora_rank"])
    w.add_key_length_mla(c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    w.add_value_length_mla(c["v_head_dim"])
    w.add_rope_dimension_count(c["qk_rope_head_dim"])

    w.add_leading_dense_block_count(c["first_k_dense_replace"])
    w.add_expert_count(c["n_routed_experts"])
    w.add_expert_used_count(c["num_experts_per_tok"])
    w.add_expert_shared_count(c["n_shared_experts"])
    w.add_expert_feed_forward_length(c["moe_intermediate_size"])
    w.add_expert_weights_scale(c["routed_scaling_factor"])
    if c["norm_topk_prob"]:
        w.add_expert_weights_norm(True)
    w.add_expert_gating_func(gguf.ExpertGatingFuncType[c["scoring_func"].upper()])
    if c.get("n_group"):
        w.add_expert_group_count(c["n_group"])
    if c.get("topk_group"):
        w.add_expert_group_used_count(c["topk_group"])

    scaling = c.get("rope_scaling")
    if scaling:
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(scaling["factor"])
        w.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        w.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])
        w.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])
    w.add_tokenizer_model("no_vocab")


def plan(tensors, c):
    """Yield (name in the file, dtype name, float32 wanted, shape, function that makes the array)."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.DEEPSEEK2, c["num_hidden_layers"])
    heads, nope, value = c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"]

    def item(source, dtype, shape, make):
        target = names.get_name(source.replace("e_score_correction_bias", "e_score_correction.bias"), (".weight", ".bias"))
        if target is None:
            sys.exit(f"{source}: llama.cpp has no name for it")
        narrow = len(shape) > 1 and not target.endswith(("_norm.weight", "ffn_gate_inp.weight"))
        return target, dtype, not narrow, shape, make

    for name, (dtype, data) in tensors.items():
        layer = re.match(r"model\.layers\.(\d+)\.", name)
        if layer and int(layer[1]) >= c["num_hidden_layers"] or name.endswith("rotary_emb.inv_freq"):
            continue  # multi-token prediction; a table that nobody needs
        expert = re.fullmatch(r"(model\.layers\.\d+\.mlp\.experts\.)(\d+)(\..*)", name)
        if expert:
            if expert[2] != "0":
                continue  # comes with the first
            parts = [tensors[f"{expert[1]}{e}{expert[3]}"][1] for e in range(c["n_routed_experts"])]
            yield item(expert[1][:-1] + expert[3], dtype, (len(parts), *data.shape), lambda parts=parts: np.stack(parts))
        elif name.endswith("kv_b_proj.weight"):
            by_head = data.reshape(heads, nope + value, -1)  # (heads, keys and values, latent)
            k, v = by_head[:, :nope].transpose(0, 2, 1), by_head[:, nope:]
            yield item(name.replace("kv_b_proj", "k_b_proj"), dtype, k.shape, lambda k=k: k)
            yield item(name.replace("kv_b_proj", "v_b_proj"), dtype, v.shape, lambda v=v: v)
        else:
            yield item(name, dtype, data.shape, lambda data=data: data)


def widened(data):
    """Return bf16 bits as float32."""
    return data if data.dtype == np.float32 else (data.astype(np.uint32) << 16).view(np.float32)


def main(directory, out):
    directory = pathlib.Path(directory)
    config = json.loads((directory / "config.json").read_text())
    writer = gguf.GGUFWriter(out, "deepseek2")
    write_keys(writer, config)
    planned = list(plan(read_tensors(directory), config))
    for name, dtype, wide, shape, _ in planned:
        count = int(np.prod(shape))
        if wide or dtype == "F32":
            writer.add_tensor_info(name, shape, np.dtype(np.float32), 4 * count)
        else:
            in_bytes = (*shape[:-1], 2 * shape[-1])
            writer.add_tensor_info(name, in_bytes, np.dtype(np.uint8), 2 * count, raw_dtype=RAW[dtype])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, _, wide, _, make in planned:
        data = make()
        writer.write_tensor_data(np.ascontiguousarray(widened(data) if wide else data))
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
