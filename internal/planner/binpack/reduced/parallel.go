package reduced

import "sync"

// InParallel runs two functions at the same time.
func InParallel(a, b func()) {
	var wg sync.WaitGroup
	wg.Go(b)
	a()
	wg.Wait()
}
