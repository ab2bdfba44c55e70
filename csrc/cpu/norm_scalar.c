//go:build cgo && amd64

#include "vec_scalar.h"
#include "dk.h"
#include "norm_body.h"
