//go:build cgo && amd64

#include "vec_scalar.h"
#include "dk.h"
#include "bce_body.h"
