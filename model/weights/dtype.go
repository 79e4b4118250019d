package weights

import "slices"

// DType is the element type of a stored tensor.
type DType uint8

// The element types of the format. Only F32, F16, BF16 and F8E4M3 serve as
// weights by default; the others are known so that files which hold them open.
const (
	Bool DType = iota + 1
	U8
	I8
	U16
	I16
	U32
	I32
	U64
	I64
	F16
	BF16
	F32
	F64
	F8E4M3
	F8E5M2
	F8E8M0
	F6E2M3
	F6E3M2
	F4
	C64
)

var dtypes = [...]struct {
	name  string
	bits  uint64 // of one element
	align uintptr
}{
	Bool: {"BOOL", 8, 1}, U8: {"U8", 8, 1}, I8: {"I8", 8, 1}, U16: {"U16", 16, 2}, I16: {"I16", 16, 2},
	U32: {"U32", 32, 4}, I32: {"I32", 32, 4}, U64: {"U64", 64, 8}, I64: {"I64", 64, 8},
	F16: {"F16", 16, 2}, BF16: {"BF16", 16, 2}, F32: {"F32", 32, 4}, F64: {"F64", 64, 8},
	F8E4M3: {"F8_E4M3", 8, 1}, F8E5M2: {"F8_E5M2", 8, 1}, F8E8M0: {"F8_E8M0", 8, 1},
	F6E2M3: {"F6_E2M3", 6, 1}, F6E3M2: {"F6_E3M2", 6, 1}, F4: {"F4", 4, 1}, C64: {"C64", 64, 4},
}

var dtypeByName = func() map[string]DType {
	m := make(map[string]DType, len(dtypes))
	for d, info := range dtypes {
		if info.name != "" {
			m[info.name] = DType(d)
		}
	}
	return m
}()

// weightTypes are what a request without types accepts.
var weightTypes = []DType{BF16, F16, F32, F8E4M3}

// String gives the format's name, such as "BF16" or "F8_E4M3".
func (d DType) String() string {
	if int(d) < len(dtypes) && dtypes[d].name != "" {
		return dtypes[d].name
	}
	return "unknown"
}

func (d DType) in(list []DType) bool { return slices.Contains(list, d) }
