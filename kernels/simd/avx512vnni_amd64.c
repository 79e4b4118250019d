#include "int8_vnni.h"

#include "matmul8.h"
