//go:build cgo && amd64

#include "vec_scalar.h"
#include "dk.h"
#include "head_body.h"
