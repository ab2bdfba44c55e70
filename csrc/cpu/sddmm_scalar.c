//go:build cgo && amd64

#include "vec_scalar.h"
#include "dk.h"
#include "sddmm_body.h"
