package blob

import (
	"context"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Writer writes an object. Nothing is seen of it before Close has succeeded; after
// Abort, or where Close fails, nothing is left.
type Writer struct {
	pipe *io.PipeWriter
	done chan error
	stop context.CancelFunc
	over bool
}

// Create starts writing the object at url, in parts where it is long. exclusive makes
// Close fail, with an error that is fs.ErrExist, where the object exists by then.
func Create(ctx context.Context, url string, exclusive bool, opt Options) (*Writer, error) {
	bucket, key, err := Split(url)
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("write " + url + ": it names a bucket and no object")
	}
	c, err := client(ctx, opt)
	if err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	out := &Writer{pipe: w, done: make(chan error, 1), stop: cancel}
	up := transfermanager.New(c, func(o *transfermanager.Options) {
		o.PartSizeBytes = int64(max(opt.PartSize, 5<<20))
		o.Concurrency = opt.Ahead
	})
	go func() {
		in := &transfermanager.UploadObjectInput{Bucket: &bucket, Key: &key, Body: r}
		if exclusive {
			in.IfNoneMatch = aws.String("*")
		}
		_, err := up.UploadObject(ctx, in)
		if err != nil {
			err = pathError("write", bucket, key, err)
		}
		r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // a failed upload ends Write
		out.done <- err
	}()
	return out, nil
}

// Write takes the next bytes.
func (w *Writer) Write(p []byte) (int, error) { return w.pipe.Write(p) }

// Close ends the object and waits until it is stored.
func (w *Writer) Close() error {
	if w.over {
		return nil
	}
	w.over = true
	w.pipe.Close()
	err := <-w.done
	w.stop()
	return err
}

// errAborted is what the upload sees of Abort.
var errAborted = errors.New("writing was given up")

// Abort gives the object up.
func (w *Writer) Abort() {
	if w.over {
		return
	}
	w.over = true
	w.pipe.CloseWithError(errAborted)
	<-w.done
	w.stop()
}

// Remove deletes the object at url; one that is not there is no error.
func Remove(ctx context.Context, url string, opt Options) error {
	bucket, key, err := Split(url)
	if err != nil {
		return err
	}
	c, err := client(ctx, opt)
	if err != nil {
		return err
	}
	if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
		return pathError("remove", bucket, key, err)
	}
	return nil
}
