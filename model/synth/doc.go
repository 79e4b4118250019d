// Package synth writes checkpoints with random weights in the layout that the DeepSeek architectures are published in: the real
// keys, widths and tensor names, as many layers and tokens as one asks for. They are for measuring: speed and memory depend on
// the sizes, not on what a model has learnt.
//
// It owns the shapes, the tensors of each and the numbers in them. A number depends on the seed, the name of its tensor and its
// place there, on nothing else: not on the machine, the number of cores, the other tensors or how they are cut into files. FP8
// is that number quantized by the published rule, bfloat16 the same rounded. Nothing of a tensor is held but the pieces that are
// being written.
//
// It makes no tokenizer: such a model takes token ids.
package synth
