package maintenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/auth"
)

// copyKeys copies projects and keys, with their revocations.
func (c *Copier) copyKeys(ctx context.Context, total *Copied) error {
	projects, err := c.From.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		if err := c.To.CreateProject(ctx, project); err != nil && !errors.Is(err, continuo.ErrExists) {
			return err
		}
	}
	keys, err := c.From.Keys(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		err := c.To.CreateKey(ctx, key)
		if errors.Is(err, continuo.ErrExists) {
			err = nil
		}
		if err == nil && !key.RevokedAt.IsZero() {
			_, err = c.To.RevokeKey(ctx, key.ID, key.RevokedAt)
		}
		if err != nil {
			return fmt.Errorf("key %s: %w", key.ID, err)
		}
	}
	total.Keys = int64(len(keys))
	return nil
}

// verifyKeys checks that the destination has the source's projects, and its keys in the same state.
func (c *Copier) verifyKeys(ctx context.Context, total *Copied) error {
	projects, err := c.From.Projects(ctx)
	if err != nil {
		return err
	}
	copied, err := c.To.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		if !slices.ContainsFunc(copied, func(p auth.Project) bool { return p.ID == project.ID }) {
			return fmt.Errorf("the copy does not have the project %s", project.ID)
		}
	}
	keys, err := c.From.Keys(ctx, "")
	if err != nil {
		return err
	}
	for _, key := range keys {
		there, err := c.To.Key(ctx, key.ID)
		if err == nil && (there.Hash != key.Hash || there.ProjectID != key.ProjectID || !there.RevokedAt.Equal(key.RevokedAt) || !there.ExpiresAt.Equal(key.ExpiresAt)) {
			err = errors.New("it is another one in the copy")
		}
		if err != nil {
			return fmt.Errorf("key %s: %w", key.ID, err)
		}
	}
	total.Keys = int64(len(keys))
	return nil
}

// copySpending adds to the destination what the source has spent more.
func (c *Copier) copySpending(ctx context.Context) error {
	missing, err := c.missingSpending(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	return c.To.Charge(ctx, missing)
}

// verifySpending checks that the destination has what the source has spent.
func (c *Copier) verifySpending(ctx context.Context) error {
	missing, err := c.missingSpending(ctx)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the copy does not have all that was spent in project %s on %s", missing[0].ProjectID, missing[0].Day)
	}
	return err
}

// missingSpending is what the source has spent more than the destination, for each day, key, user and model.
func (c *Copier) missingSpending(ctx context.Context) (missing []continuo.Spending, err error) {
	query := continuo.SpendingQuery{By: []continuo.SpendingGroup{
		continuo.SpendingByDay, continuo.SpendingByKey, continuo.SpendingByUser, continuo.SpendingByModel,
	}}
	from, err := c.From.Spent(ctx, query)
	if err != nil {
		return nil, err
	}
	there, err := c.To.Spent(ctx, query)
	if err != nil {
		return nil, err
	}
	have := map[continuo.Spending]continuo.Spent{}
	for _, row := range there {
		have[query.Key(row)] = row.Spent
	}
	for _, row := range from {
		if more := row.Spent.Minus(have[query.Key(row)]); more.Requests > 0 {
			row.Spent = more
			missing = append(missing, row)
		}
	}
	return missing, nil
}

// copyBlobs copies the blobs that the destination does not have, and checks each by its hash.
func (c *Copier) copyBlobs(ctx context.Context, total *Copied) error {
	there := map[string]bool{}
	if err := eachBlob(ctx, c.To, func(hash string) error { there[hash] = true; return nil }); err != nil {
		return err
	}
	total.Blobs = 0
	return eachBlob(ctx, c.From, func(hash string) error {
		total.Blobs++
		if there[hash] {
			return nil
		}
		data, err := c.From.Blob(ctx, hash)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
			return fmt.Errorf("blob %s does not match its hash: it is damaged in the source", hash)
		}
		return c.To.PutBlob(ctx, hash, data)
	})
}

func eachBlob(ctx context.Context, store RecordStore, each func(hash string) error) error {
	for after := ""; ; {
		page, err := store.BlobHashes(ctx, after, 1000)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, hash := range page {
			if err := each(hash); err != nil {
				return err
			}
			after = hash
		}
	}
}

// CopyObjects copies the objects that a destination does not have, or has in another size or from an earlier time, and
// returns how many. It calls progress for each; progress may be nil.
func CopyObjects(ctx context.Context, from, to continuo.ObjectStore, progress func(objects, bytes int64)) (copied int64, err error) {
	there := map[string]continuo.ObjectInfo{}
	for object, err := range to.Objects(ctx, "") {
		if err != nil {
			return 0, err
		}
		there[object.Name] = object
	}
	var size int64
	for object, err := range from.Objects(ctx, "") {
		if err != nil {
			return copied, err
		}
		if have, ok := there[object.Name]; ok && have.Size == object.Size && !object.ModifiedAt.After(have.ModifiedAt) {
			continue
		}
		switch err := copyObject(ctx, from, to, object.Name); {
		case errors.Is(err, continuo.ErrNotFound): // removed in the meantime
			continue
		case err != nil:
			return copied, fmt.Errorf("copy object %s: %w", object.Name, err)
		}
		copied, size = copied+1, size+object.Size
		if progress != nil {
			progress(copied, size)
		}
	}
	return copied, nil
}

func copyObject(ctx context.Context, from, to continuo.ObjectStore, name string) error {
	reader, err := from.ReadObject(ctx, name, 0, -1)
	if err != nil {
		return err
	}
	return errors.Join(to.PutObject(ctx, name, reader), reader.Close())
}
