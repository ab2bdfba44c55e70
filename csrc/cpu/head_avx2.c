//go:build cgo && amd64

#include "vec_avx2.h"
#include "dk.h"
#include "head_body.h"
