package nn

// Output is what a step gives back. Its slices belong to the model and are valid until its next step. Logits and their marks meet on
// the engine's first rank; on its others they are empty.
type Output struct {
	Logits   []float32 // (samples, vocab)
	BadLayer []int32   // (samples) the first layer whose output was not finite: -1 none, layers from 0, the layer count means the final norm or the head
	Sent     Traffic   // of this rank in this step
	Expanded int       // rows that attended in the expanded form, padding left out
}
