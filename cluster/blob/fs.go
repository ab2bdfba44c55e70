package blob

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// FS is the objects below url, which is s3://bucket or s3://bucket/prefix, as a tree of
// files. It is read-only and safe for concurrent use; requests end with ctx. Its files
// are io.ReaderAts too, fetched in parts; one that is replaced while it is read gives an
// error, never a mixture.
func FS(ctx context.Context, url string, opt Options) (fs.FS, error) {
	bucket, prefix, err := Split(url)
	if err != nil {
		return nil, err
	}
	c, err := client(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &tree{ctx: ctx, s3: c, bucket: bucket, prefix: prefix, opt: opt.withDefaults()}, nil
}

// tree implements fs.FS, fs.StatFS and fs.ReadDirFS.
type tree struct {
	ctx    context.Context
	s3     *s3.Client
	bucket string
	prefix string // without a slash at its end
	opt    Options
}

// key is the object that name stands for.
func (t *tree) key(name string) string {
	if name == "." {
		return t.prefix
	}
	return strings.TrimPrefix(t.prefix+"/"+name, "/")
}

func (t *tree) check(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// Open opens a file or a folder.
func (t *tree) Open(name string) (fs.File, error) {
	in, err := t.stat("open", name)
	if err != nil {
		return nil, err
	}
	if in.dir {
		return &folder{tree: t, name: name, info: in}, nil
	}
	return newFile(t, t.key(name), in), nil
}

// Stat asks for an object's size, or whether objects lie below it.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	in, err := t.stat("stat", name)
	if err != nil {
		return nil, err
	}
	return in, nil
}

func (t *tree) stat(op, name string) (info, error) {
	if err := t.check(op, name); err != nil {
		return info{}, err
	}
	key := t.key(name)
	base := path.Base(key)
	if key == "" {
		base = t.bucket
	} else {
		head, err := t.s3.HeadObject(t.ctx, &s3.HeadObjectInput{Bucket: &t.bucket, Key: &key})
		if err == nil {
			return info{name: base, size: aws.ToInt64(head.ContentLength), mod: seconds(head.LastModified), tag: aws.ToString(head.ETag)}, nil
		}
		if err = pathError(op, t.bucket, key, err); !errors.Is(err, fs.ErrNotExist) {
			return info{}, err
		}
	}
	below := ""
	if key != "" {
		below = key + "/"
	}
	page, err := t.s3.ListObjectsV2(t.ctx, &s3.ListObjectsV2Input{Bucket: &t.bucket, Prefix: &below, MaxKeys: aws.Int32(1)})
	if err != nil {
		return info{}, pathError(op, t.bucket, key, err)
	}
	if len(page.Contents) == 0 && key != "" {
		return info{}, &fs.PathError{Op: op, Path: Scheme + t.bucket + "/" + key, Err: fs.ErrNotExist}
	}
	return info{name: base, dir: true}, nil
}

// ReadDir lists a folder, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.check("readdir", name); err != nil {
		return nil, err
	}
	prefix := t.key(name)
	if prefix != "" {
		prefix += "/"
	}
	var out []fs.DirEntry
	pages := s3.NewListObjectsV2Paginator(t.s3, &s3.ListObjectsV2Input{Bucket: &t.bucket, Prefix: &prefix, Delimiter: aws.String("/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.ctx)
		if err != nil {
			return nil, pathError("readdir", t.bucket, strings.TrimSuffix(prefix, "/"), err)
		}
		for _, d := range page.CommonPrefixes {
			base := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(d.Prefix), prefix), "/")
			if base != "" {
				out = append(out, info{name: base, dir: true})
			}
		}
		for _, o := range page.Contents {
			// An object called as the folder marks it where it is empty.
			if base := strings.TrimPrefix(aws.ToString(o.Key), prefix); base != "" {
				out = append(out, info{name: base, size: aws.ToInt64(o.Size), mod: seconds(o.LastModified), tag: aws.ToString(o.ETag)})
			}
		}
	}
	if len(out) == 0 && prefix != "" {
		in, err := t.stat("readdir", name)
		if err != nil {
			return nil, err
		}
		if !in.dir {
			return nil, &fs.PathError{Op: "readdir", Path: Scheme + t.bucket + "/" + t.key(name), Err: errors.New("it is a file, not a folder")}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	return out, nil
}

// seconds is a time as precise as every reply gives it.
func seconds(t *time.Time) time.Time { return aws.ToTime(t).Truncate(time.Second) }

// info describes an object or a folder: fs.FileInfo and fs.DirEntry.
type info struct {
	name string
	size int64
	mod  time.Time
	dir  bool
	tag  string
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return i.mod }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Type() fs.FileMode  { return i.Mode().Type() }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
func (i info) Info() (fs.FileInfo, error) { return i, nil }

// folder is an open folder.
type folder struct {
	tree *tree
	name string
	info info
	rest []fs.DirEntry
	read bool
}

func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *folder) Close() error               { return nil }
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("it is a folder")}
}

// ReadDir lists the folder, n entries at a time where n > 0.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		all, err := d.tree.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.rest, d.read = all, true
	}
	if n <= 0 {
		out := d.rest
		d.rest = nil
		return out, nil
	}
	return d.next(n)
}
