#include "rows_dispatch.h"

#include <stddef.h>

const mr_rows *moerack_rows(int set) {
	switch (set) {
#if defined(__x86_64__)
	case MR_AVX2: return &moerack_rows_avx2;
	case MR_AVX512: return &moerack_rows_avx512;
#elif defined(__aarch64__)
	case MR_NEON: return &moerack_rows_neon;
#endif
	}
	return NULL;
}
