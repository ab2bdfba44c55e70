package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"dorylus/engine/dataset"
)

// server is an S3 server on loopback, with a bucket called graphs.
type server struct {
	*httptest.Server
	gets  atomic.Int64
	wrap  func(http.ResponseWriter, *http.Request) bool // true: it has answered
	inner http.Handler
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Range") != "" {
		s.gets.Add(1)
	}
	if s.wrap != nil && s.wrap(w, r) {
		// An answer before the body was read resets the connection under the client's feet.
		io.Copy(io.Discard, r.Body)
		return
	}
	s.inner.ServeHTTP(w, r)
}

func serve(t *testing.T) *server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("graphs"); err != nil {
		t.Fatal(err)
	}
	s := &server{inner: gofakes3.New(backend).Server()}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL_S3": s.URL, "AWS_REGION": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(key, value)
	}
	return s
}

func put(t *testing.T, key string, data []byte) {
	t.Helper()
	w, err := Create(context.Background(), "s3://graphs/"+key, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestFSIsAnFS(t *testing.T) {
	serve(t)
	put(t, "sets/a/edges.csv", []byte("0,1\n"))
	put(t, "sets/a/raw/x.npy", noise(1000))
	put(t, "sets/b.mtx", []byte("text"))
	put(t, "setsnot/c", []byte("other"))
	for url, files := range map[string][]string{
		"s3://graphs":         {"sets/a/edges.csv", "sets/a/raw/x.npy", "sets/b.mtx", "setsnot/c"},
		"s3://graphs/sets":    {"a/edges.csv", "a/raw/x.npy", "b.mtx"},
		"s3://graphs/sets/a/": {"edges.csv", "raw/x.npy"},
	} {
		tree, err := FS(context.Background(), url, Options{PartSize: 300})
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(tree, files...); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestReadsInParts(t *testing.T) {
	s := serve(t)
	data := noise(10_001)
	put(t, "big", data)
	tree, err := FS(context.Background(), "s3://graphs", Options{PartSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	f, err := tree.Open("big")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(data), err)
	}
	if n := s.gets.Load(); n != 11 {
		t.Errorf("%d requests for 11 parts", n)
	}
	at := f.(io.ReaderAt)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(2, uint64(k)))
			for range 50 {
				off, n := r.IntN(len(data)), r.IntN(3000)
				p := make([]byte, n)
				got, err := at.ReadAt(p, int64(off))
				want := data[off:min(off+n, len(data))]
				if !bytes.Equal(p[:got], want) || (err == io.EOF) != (got < n) {
					t.Errorf("%d bytes at %d: got %d, %v", n, off, got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestMissingAndForbidden(t *testing.T) {
	s := serve(t)
	tree, err := FS(context.Background(), "s3://graphs", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(tree, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing object: %v", err)
	}
	if _, err := fs.ReadDir(tree, "nothing"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "s3://graphs/nothing") {
		t.Errorf("a missing folder: %v", err)
	}
	s.wrap = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	if _, err := tree.Open("x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a forbidden object: %v", err)
	}
	if _, err := FS(context.Background(), "s3:///x", Options{}); err == nil || !strings.Contains(err.Error(), "no bucket") {
		t.Errorf("no bucket: %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	if _, err := FS(context.Background(), "s3://b", Options{}); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("no region: %v", err)
	}
	if _, err := FS(context.Background(), "s3://b", Options{Profile: "nobody"}); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("no such profile: %v", err)
	}
}

// A reply that ends early is taken up where it broke; what was replaced is not mixed.
func TestBrokenAndReplaced(t *testing.T) {
	s := serve(t)
	data := noise(3000)
	put(t, "o", data)
	var broken atomic.Int64
	s.wrap = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.Header.Get("Range") == "" || broken.Add(1) > 2 {
			return false
		}
		rec := httptest.NewRecorder()
		s.inner.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	tree, err := FS(context.Background(), "s3://graphs", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(tree, "o"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("broken twice: %d bytes, %v", len(got), err)
	}
	s.wrap = nil
	tree, _ = FS(context.Background(), "s3://graphs", Options{PartSize: 1000, Ahead: 1})
	f, err := tree.Open("o")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	put(t, "o", noise(3001))
	if _, err := f.(io.ReaderAt).ReadAt(make([]byte, 10), 2500); err == nil || !strings.Contains(err.Error(), "replaced while it was read") {
		t.Errorf("replaced: %v", err)
	}
}

func TestCloseEndsReading(t *testing.T) {
	s := serve(t)
	put(t, "o", noise(100))
	reached := make(chan bool)
	s.wrap = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") == "" {
			return false
		}
		close(reached)
		<-r.Context().Done()
		return true
	}
	tree, err := FS(context.Background(), "s3://graphs", Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := tree.Open("o")
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := f.Read(make([]byte, 10))
		result <- err
	}()
	<-reached
	f.Close()
	if err := <-result; err == nil {
		t.Error("reading went on")
	}
	if _, err := f.Read(make([]byte, 10)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestWriter(t *testing.T) {
	s := serve(t)
	ctx := context.Background()
	big := noise(12 << 20)
	put(t, "big", big) // three parts
	tree, err := FS(ctx, "s3://graphs", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(tree, "big"); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes of %d, %v", len(got), len(big), err)
	}
	w, err := Create(ctx, "s3://graphs/gone", false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(big); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := fs.Stat(tree, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an aborted object: %v", err)
	}
	if w, err = Create(ctx, "s3://graphs/big", true, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an object that exists: %v", err)
	}
	s.wrap = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	if w, err = Create(ctx, "s3://graphs/no", false, Options{}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(big)
	if err := errors.Join(err, w.Close()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a forbidden object: %v", err)
	}
	s.wrap = nil
	if err := Remove(ctx, "s3://graphs/big", Options{}); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(tree, "big"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed object: %v", err)
	}
	if _, err := Create(ctx, "s3://graphs", false, Options{}); err == nil {
		t.Error("a bucket was written to as an object")
	}
}

func TestSplit(t *testing.T) {
	for url, want := range map[string][2]string{"s3://b": {"b", ""}, "s3://b/": {"b", ""}, "s3://b/k": {"b", "k"}, "s3://b/a/b/": {"b", "a/b"}} {
		if b, k, err := Split(url); err != nil || b != want[0] || k != want[1] {
			t.Errorf("%s: got %q, %q, %v", url, b, k, err)
		}
	}
	for _, url := range []string{"b/k", "s3://", "s3:///k", "s3://b/a//b", "s3://b/../c"} {
		if _, _, err := Split(url); err == nil {
			t.Errorf("%s: no error", url)
		}
	}
	if Is("/tmp/x") || !Is("s3://b/x") {
		t.Error("Is")
	}
}

// The data set readers work on it: folders, compressed files and zip files.
func TestDatasetsFromS3(t *testing.T) {
	serve(t)
	put(t, "g/edges.csv", []byte("0,1\n1,2\n"))
	put(t, "g/labels.csv", []byte("0\n1\n0\n"))
	tree, err := FS(context.Background(), "s3://graphs", Options{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := dataset.Open(context.Background(), "g", dataset.Options{FS: tree})
	if err != nil || raw.Name != "g" || raw.N != 3 || len(raw.Src) != 2 || len(raw.Labels) != 3 {
		t.Errorf("got %+v, %v", raw, err)
	}
	if _, err := dataset.Open(context.Background(), "missing", dataset.Options{FS: tree}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing source: %v", err)
	}
}
