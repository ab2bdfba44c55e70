package launch

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"dorylus/cluster/member"
)

// Programs of a control plane, which make k8s-test names.
const (
	apiServerEnv = "DORYLUS_KUBE_APISERVER"
	etcdEnv      = "DORYLUS_ETCD"
	adminToken   = "admin-of-the-test"
)

// controlPlane is an API server that has no nodes and no controllers: it checks what it is
// given, and keeps it.
type controlPlane struct {
	url    string
	client *http.Client
}

// startControlPlane starts etcd and kube-apiserver, which end with the test.
func startControlPlane(t *testing.T, etcd, apiServer string) *controlPlane {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	store := "http://" + freeAddress(t)
	client, peers := store, "http://"+freeAddress(t)
	run := func(name, path string, args ...string) <-chan error {
		out, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatalf("start %s: %v", name, err)
		}
		ended := make(chan error, 1)
		done := make(chan struct{})
		go func() {
			ended <- cmd.Wait()
			close(done)
		}()
		t.Cleanup(func() {
			cancel()
			<-done
			text, err := os.ReadFile(out.Name())
			_ = out.Close()
			if t.Failed() {
				t.Logf("the last words of %s (%v):\n%s", name, err, text[max(0, len(text)-3000):])
			}
		})
		return ended
	}
	etcdEnded := run("etcd", etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for conn, err := net.Dial("tcp", strings.TrimPrefix(store, "http://")); ; conn, err = net.Dial("tcp", strings.TrimPrefix(store, "http://")) {
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case err := <-etcdEnded:
			t.Fatalf("etcd has ended: %v", err)
		case <-late.C:
			t.Fatalf("etcd does not listen after two minutes: %v", err)
		case <-tick.C:
		}
	}
	key := filepath.Join(dir, "accounts.pem")
	writeKey(t, key)
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(adminToken+",admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	certs := filepath.Join(dir, "certs")
	apiEnded := run("kube-apiserver", apiServer, "--etcd-servers="+store, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+certs,
		"--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key,
		"--service-account-signing-key-file="+key, "--authorization-mode=RBAC", "--token-auth-file="+tokens, "--disable-admission-plugins=ServiceAccount")
	c := &controlPlane{url: "https://" + at}
	for {
		select {
		case err := <-etcdEnded:
			t.Fatalf("etcd has ended: %v", err)
		case err := <-apiEnded:
			t.Fatalf("kube-apiserver has ended: %v", err)
		case <-late.C:
			t.Fatal("kube-apiserver is not ready after two minutes")
		case <-tick.C:
		}
		if c.client == nil {
			if c.client = trusting(filepath.Join(certs, "apiserver.crt")); c.client == nil {
				continue
			}
		}
		if code, _, err := c.do("GET", "/readyz", "", nil); err == nil && code == http.StatusOK {
			return c
		}
	}
}

// freeAddress is a port of loopback that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func writeKey(t *testing.T, path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// trusting is a client that trusts the certificates in a file, nil while there are none.
func trusting(file string) *http.Client {
	text, err := os.ReadFile(file)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil
	}
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// do asks once.
func (c *controlPlane) do(method, path, kind string, body []byte) (code int, answer string, err error) {
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, string(text), err
}

// paths of the kinds of a manifest, below a namespace.
var paths = map[string]string{
	"v1 Service": "/api/v1/namespaces/%s/services", "batch/v1 Job": "/apis/batch/v1/namespaces/%s/jobs",
	"jobset.x-k8s.io/v1alpha2 JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets",
}

// create hands a document over as kubectl apply would, with strict validation.
func (c *controlPlane) create(t *testing.T, namespace, doc string) (code int, answer string) {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
		t.Fatal(err)
	}
	path, ok := paths[head.APIVersion+" "+head.Kind]
	if !ok {
		t.Fatalf("no path for %s %s", head.APIVersion, head.Kind)
	}
	code, answer, err := c.do("POST", fmt.Sprintf(path, namespace)+"?fieldValidation=Strict", "application/yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

// checkManifests hands over all that launch k8s can write, and what it must not.
func (c *controlPlane) checkManifests(t *testing.T) {
	k := sample()
	if code, answer, err := c.do("POST", "/api/v1/namespaces", "application/yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: ml}\n")); err != nil || code != http.StatusCreated {
		t.Fatalf("make a namespace: %d, %v\n%s", code, err, answer)
	}
	accepted := func(what, doc string) {
		t.Helper()
		if code, answer := c.create(t, k.Namespace, doc); code != http.StatusCreated {
			t.Errorf("%s is refused, status %d: %s\nin\n%s", what, code, answer, doc)
		}
	}
	for _, api := range []string{Jobs, JobSets} {
		for i, change := range []func(*Kubernetes){
			func(*Kubernetes) {},
			func(k *Kubernetes) {
				*k = Kubernetes{Image: k.Image, Program: k.Program, Namespace: k.Namespace, Graphs: 1, Params: 1, Port: 1024, Ready: time.Second, CertsSecret: "c"}
			},
			func(k *Kubernetes) { k.ServiceAccount, k.Graphs, k.MaxRestarts = "trainer", 1000, 0 },
		} {
			k = sample()
			change(&k)
			k.API, k.Name = api, fmt.Sprintf("run%d", i)
			what := fmt.Sprintf("manifest %d, --api=%s", i, api)
			docs := documents(t, &k)
			if api == Jobs {
				for _, doc := range docs {
					accepted(what, doc)
				}
				continue
			}
			var s jobSet3
			strict(t, docs[0], &s)
			for _, r := range s.Spec.ReplicatedJobs { // as JobSet's controller would create them
				j := batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: r.Template.ObjectMeta, Spec: r.Template.Spec}
				j.Name = s.Name + "-" + r.Name + "-0"
				text, err := yaml.Marshal(&j)
				if err != nil {
					t.Fatal(err)
				}
				accepted(what+", "+r.Name, string(text))
			}
		}
	}
	k = sample()
	k.API, k.Name = Jobs, "wrong"
	job := documents(t, &k)[1]
	for what, change := range map[string][2]string{
		"an unknown field": {"completionMode:", "completionModus:"}, "a port above 65535": {"containerPort: 7070", "containerPort: 70700"},
		"a name with capitals": {"name: wrong-" + string(member.Graph), "name: Wrong"},
	} {
		doc := strings.Replace(job, change[0], change[1], 1)
		if doc == job {
			t.Fatalf("%s: %q is not in the manifest", what, change[0])
		}
		if code, answer := c.create(t, k.Namespace, doc); code < 400 || code >= 500 {
			t.Errorf("%s is accepted, status %d: %s", what, code, answer)
		}
	}
}

// A real API server accepts the manifests.
func TestAPIServer(t *testing.T) {
	etcd, apiServer := os.Getenv(etcdEnv), os.Getenv(apiServerEnv)
	if etcd == "" || apiServer == "" {
		t.Skip("no API server was named: make k8s-test finds or builds one")
	}
	c := startControlPlane(t, etcd, apiServer)
	c.checkManifests(t)
	crd := os.Getenv("K8S_JOBSET_CRD")
	if crd == "" {
		t.Log("K8S_JOBSET_CRD=FILE would hand JobSets over as such; their Jobs were")
		return
	}
	c.checkJobSet(t, crd)
}

// checkJobSet hands a JobSet over once its definition, from a release of JobSet, is there.
func (c *controlPlane) checkJobSet(t *testing.T, crd string) {
	text, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	if code, answer, err := c.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", text); err != nil || code != http.StatusCreated {
		t.Fatalf("install %s: %d, %v\n%s", crd, code, err, answer)
	}
	k := sample()
	k.API = JobSets
	doc := documents(t, &k)[0]
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		code, answer := c.create(t, k.Namespace, doc)
		if code == http.StatusCreated {
			return
		}
		if code != http.StatusNotFound { // it takes a moment until the kind is known
			t.Fatalf("the JobSet is refused, status %d: %s\nin\n%s", code, answer, doc)
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("JobSets are not known a minute after %s was installed: %s", crd, answer)
		}
	}
}
