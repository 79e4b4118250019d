#include "vec_avx2.h"

#include "matmul.h"

#include "heads.h"

#include "int8_avx2.h"

#include "matmul8.h"
