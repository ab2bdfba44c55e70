//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cudashim

import (
	"reflect"
	"strings"
	"testing"
)

func TestStubRefuses(t *testing.T) {
	if err := Open(""); err == nil || !strings.Contains(err.Error(), "built without GPU support") || Built {
		t.Errorf("Built is %v, Open gives %v", Built, err)
	}
	if s := State(); !reflect.DeepEqual(s, Status{}) {
		t.Errorf("nothing has been opened, but State is %+v", s)
	}
}
