package environments

import (
	"context"

	"sallyport/sandbox/image"
)

// Images are OCI images in the cache directory of environments. They are kept while this process lives.
type Images struct{ of *Environments }

// ImagesOf returns the images that environments keep.
func ImagesOf(e *Environments) Images { return Images{e} }

// Image returns an image, which it pulls if necessary. A tag means the image that it named at its first use.
func (i Images) Image(ctx context.Context, reference string) (image.Root, error) {
	opts, err := i.options()
	if err != nil {
		return image.Root{}, err
	}
	pinned, err := image.PinOnce(ctx, reference, opts)
	if err != nil {
		return image.Root{}, err
	}
	root, err := i.pull(ctx, pinned, true)
	if err == nil {
		i.of.work.Go(func() { i.of.pruneUnused(i.of.quit) })
	}
	return root, err
}

// Moved returns a reference with the digest that its tag has now, "" if that is still the digest of its first use.
func (i Images) Moved(ctx context.Context, reference string) (string, error) {
	opts, err := i.options()
	if err != nil {
		return "", err
	}
	return image.Moved(ctx, reference, opts)
}

// pull returns an image that is pinned by its digest, perhaps prepared to run its own program.
func (i Images) pull(ctx context.Context, reference string, program bool) (image.Root, error) {
	opts, err := i.options()
	if err != nil {
		return image.Root{}, err
	}
	opts.Program = program
	root, err := image.Pull(ctx, reference, opts)
	if err == nil {
		i.of.lease.add(imageKey(root), func() error { return image.MarkUsed(root) })
	}
	return root, err
}

func (i Images) options() (image.Options, error) {
	dir, err := i.of.folder(imageFolder)
	return image.Options{Dir: dir, Logger: i.of.opts.Logger}, err
}
