#include "vec_avx512.h"

#include "matmul.h"

#include "heads.h"
