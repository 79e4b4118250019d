// Package nn holds what architectures share: the rows of a step and what comes of them, the entries of a step's list and where in
// it a rank is, YaRN rotary tables, and the loading of norms and linear layers onto a device. It works over hal only; which
// layers follow each other is an architecture's business (model/deepseek).
package nn
