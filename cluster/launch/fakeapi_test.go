package launch

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// standIn serves the few requests of checkManifests, by strict decoding and a few checks of
// values: it tries the test of a real API server, which is not there everywhere.
func standIn(args []string) error {
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	res, err := http.Get(flags["etcd-servers"] + "/version") // as the real one, it needs etcd
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	err = errors.Join(os.MkdirAll(flags["cert-dir"], 0o755),
		os.WriteFile(filepath.Join(flags["cert-dir"], "apiserver.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", flags["bind-address"]+":"+flags["secure-port"], &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		return err
	}
	tokens, err := os.ReadFile(flags["token-auth-file"])
	if err != nil {
		return err
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _, _ := strings.Cut(string(tokens), ",")
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/readyz":
		case r.URL.Path == "/api/v1/namespaces":
			w.WriteHeader(http.StatusCreated)
		default:
			if err := standInCheck(r.URL.Path, r.URL.Query().Get("fieldValidation"), body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}
	}))
}

func standInCheck(path, validation string, body []byte) error {
	name := ""
	switch {
	case validation != "Strict":
		return fmt.Errorf("fieldValidation is %q", validation)
	case strings.HasSuffix(path, "/ml/services"):
		var s corev1.Service
		if err := yaml.UnmarshalStrict(body, &s); err != nil {
			return err
		}
		name = s.Name
	case strings.HasSuffix(path, "/ml/jobs"):
		var j batchv1.Job
		if err := yaml.UnmarshalStrict(body, &j); err != nil {
			return err
		}
		name = j.Name
		if p := j.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort; p > 65535 {
			return fmt.Errorf("port %d", p)
		}
	default:
		return fmt.Errorf("no such path %s", path)
	}
	if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(name) {
		return fmt.Errorf("name %q", name)
	}
	return nil
}

// standInProgram makes the test binary an API server with a name of its own.
func standInProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kube-apiserver")
	text := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' apiserver \"$@\"\n", asServer, self)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The test of a real API server, with a stand-in behind a real etcd.
func TestControlPlaneStandIn(t *testing.T) {
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed (Debian: etcd-server)")
	}
	startControlPlane(t, etcd, standInProgram(t)).checkManifests(t)
}

// The script takes the API server that it is told of, and says loudly if there is none.
func TestManifestScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it calls go test")
	}
	call := func(env ...string) (string, error) {
		cmd := exec.Command("./k8s-test.sh")
		// A go that only shows what it was asked for, and no API server in PATH.
		bin := t.TempDir()
		for name, text := range map[string]string{"go": "#!/bin/sh\necho \"go $* with [$DORYLUS_KUBE_APISERVER] [$DORYLUS_ETCD]\"\n", "etcd": "#!/bin/sh\n"} {
			if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + bin, "ETCD=" + filepath.Join(bin, "etcd"), "XDG_CACHE_HOME=" + bin}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if _, err := exec.LookPath("kube-apiserver"); err == nil {
		t.Skip("there is a kube-apiserver in PATH")
	}
	out, err := call()
	if err != nil || !strings.Contains(out, "NO API SERVER SEES THE MANIFESTS") || !strings.Contains(out, "TestJobSet") || strings.Contains(out, "TestAPIServer") {
		t.Errorf("without an API server: %v\n%s", err, out)
	}
	if out, err = call("K8S_REQUIRE=1"); err == nil || !strings.Contains(out, "K8S_BUILD=1") {
		t.Errorf("where one is required: %v\n%s", err, out)
	}
	if out, err = call("KUBE_APISERVER=/none"); err == nil || !strings.Contains(out, "KUBE_APISERVER=/none: there is no such program") {
		t.Errorf("a wrong path: %v\n%s", err, out)
	}
	mine := standInProgram(t)
	if out, err = call("KUBE_APISERVER=" + mine); err != nil || !strings.Contains(out, "TestAPIServer") || !strings.Contains(out, "with ["+mine+"] [") {
		t.Errorf("with one: %v\n%s", err, out)
	}
}
