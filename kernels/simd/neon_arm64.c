#include "vec_neon.h"

#include "matmul.h"

#include "heads.h"

#include "int8_neon.h"

#include "matmul8.h"
