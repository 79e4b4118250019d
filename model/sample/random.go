package sample

// Uniform returns the random number of a token in [0, 1): a function of the seed and the token's position and of nothing
// else, so that neither batch nor rank nor a restart changes it. It is the upper 53 bits of two rounds of the splitmix64
// finaliser (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014), seed first, then position.
func Uniform(seed uint64, position int) float64 {
	const golden = 0x9e3779b97f4a7c15
	h := mix(seed + golden)
	h = mix(h + (uint64(position)+1)*golden)
	return float64(h>>11) * 0x1p-53
}

// mix is the splitmix64 finaliser, a bijection of 64-bit words.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
