package store_test

import (
	"testing"

	"sallyport/internal/store"
	"sallyport/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) *store.Store { return store.Memory() })
}
