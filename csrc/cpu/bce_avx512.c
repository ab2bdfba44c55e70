//go:build cgo && amd64

#include "vec_avx512.h"
#include "dk.h"
#include "bce_body.h"
