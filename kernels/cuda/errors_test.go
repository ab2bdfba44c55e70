package cuda

import (
	"strings"
	"testing"
)

// TestEveryKnownCode: each code that people meet is explained, once, with a next step.
func TestEveryKnownCode(t *testing.T) {
	seen := map[int]string{}
	for _, x := range explanations {
		for _, code := range x.codes {
			if was, twice := seen[code]; twice {
				t.Errorf("code %d is explained twice: %q and %q", code, was, x.say)
			}
			seen[code] = x.say
		}
		for _, text := range []string{x.say, x.next} {
			if text == "" || strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) == text[:1] && !strings.HasPrefix(text, "NVIDIA") {
				t.Errorf("codes %v: %q is no part of a sentence", x.codes, text)
			}
		}
	}
	for _, code := range []int{2, 34, 46, 100, 101, 209, 214, 218, 221, 222, 302, 303, 304, 700, 719, 802, 803, 804, 999} {
		if seen[code] == "" {
			t.Errorf("code %d is not explained", code)
		}
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{"cuInit", 100, ""}, "cuInit: there is a driver, but no device (CUDA error 100); give the container access to the GPU; see whether CUDA_VISIBLE_DEVICES is empty or names a GPU that is not there"},
		{Error{"open", 303, "libcuda.so.1: cannot open"}, "open: the driver's library is missing or cannot be loaded (CUDA error 303: libcuda.so.1: cannot open); install NVIDIA's driver, or start the container with access to the GPU (docker run --gpus all)"},
		{Error{"cuInit", 803, ""}, "cuInit: the driver in the kernel and its library differ (CUDA error 803); reboot, or update NVIDIA's driver and its libraries together"},
		{Error{"x", 12345, "strange"}, "x: the driver reports an error (CUDA error 12345: strange); look the code up among the CUresult values of the CUDA driver API"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("code %d:\n got %s\nwant %s", c.err.Code, got, c.want)
		}
	}
}

func TestWhatAnErrorMeans(t *testing.T) {
	for _, c := range []struct {
		code           int
		lost, tryAgain bool
	}{
		{2, false, false}, {100, false, false}, {218, false, false}, {500, false, false}, {46, false, true},
		{214, true, true}, {700, true, false}, {719, true, false}, {999, true, false},
	} {
		e := &Error{Code: c.code}
		if e.Lost() != c.lost || e.TryAgain() != c.tryAgain {
			t.Errorf("code %d: lost %v, try again %v; want %v, %v", c.code, e.Lost(), e.TryAgain(), c.lost, c.tryAgain)
		}
	}
}
