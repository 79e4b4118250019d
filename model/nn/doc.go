// Package nn holds what architectures share: the rows of a step, YaRN rotary tables, and the loading of norms and linear
// layers onto a device. It works over hal only; which layers follow each other is an architecture's business (model/deepseek).
package nn
