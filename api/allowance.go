package api

import "context"

type allowanceContext struct{}

// WithAllowance adds to the context of a connection what counts a request that comes over it, or refuses it.
func WithAllowance(ctx context.Context, allow func() error) context.Context {
	return context.WithValue(ctx, allowanceContext{}, allow)
}

// Allowed counts a request that came over a connection, or refuses it.
func Allowed(ctx context.Context) error {
	if allow, ok := ctx.Value(allowanceContext{}).(func() error); ok {
		return allow()
	}
	return nil
}
