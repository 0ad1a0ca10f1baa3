package compute

import "testing"

// Whatever a client sends, the parser answers with a result or an error.
func FuzzImages(f *testing.F) {
	f.Add("/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.09.0")
	f.Add("AKSUbuntu-2204gen2containerd-202606.09.0")
	f.Fuzz(func(t *testing.T, ref string) {
		parseImage(ref)
		parseNodeImage(ref)
		publishedAt(ref)
	})
}
