package cloudprovider

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/azure/image"
)

// settledImages keeps the versions of images that the class has already, so that
// the whole class moves to new ones within the maintenance window alone. What it
// does not have yet, or not of this spec and Kubernetes version, is new. So is one whose
// version the gallery has withdrawn: no machine can be made of it. An image of which the gallery
// lists no version for the moment stays: else all machines with it would have drifted.
func (f *ClassFinder) settledImages(ctx context.Context, class *v1beta1.AKSNodeClass, kubernetesVersion string,
	newest []v1beta1.NodeImage) ([]v1beta1.NodeImage, error) {
	ready := class.StatusConditions().Get(v1beta1.ConditionImagesReady)
	if len(class.Status.Images) == 0 || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != class.Generation {
		return newest, nil
	}
	value := ClassValue(class)
	definitions, err := image.Definitions(&value, kubernetesVersion)
	if err != nil {
		return nil, err
	}
	moves := f.windows.mayReplaceImages(ctx, class)
	var out []v1beta1.NodeImage
	for i := range definitions { // in order of preference
		has, listed := ofDefinition(class.Status.Images, definitions[i].Definition), ofDefinition(newest, definitions[i].Definition)
		if has != nil && (!moves || listed == nil) {
			withdrawn, err := f.azure.ImageWithdrawn(ctx, &value, kubernetesVersion, has.ID)
			if err != nil {
				return nil, err
			}
			if !withdrawn {
				listed = has
			}
		}
		if listed != nil {
			out = append(out, *listed)
		}
	}
	return out, nil
}

// ofDefinition is the image of a definition, nil if there is none.
func ofDefinition(images []v1beta1.NodeImage, definition string) *v1beta1.NodeImage {
	for i := range images {
		if strings.Contains(strings.ToLower(images[i].ID), "/images/"+strings.ToLower(definition)+"/versions/") {
			return &images[i]
		}
	}
	return nil
}
