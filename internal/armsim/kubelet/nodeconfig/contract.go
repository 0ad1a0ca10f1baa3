package nodeconfig

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

//go:embed contract.txt
var contract string

// The name under which the contract's messages are known to the library.
const packageName = "aksnodeconfig.v1"

// configuration is the contract's outermost message, compiled once.
var configuration = sync.OnceValues(func() (protoreflect.MessageDescriptor, error) {
	file, err := compile(contract)
	if err != nil {
		return nil, fmt.Errorf("contract.txt: %w", err)
	}
	return file.Messages().ByName("Configuration"), nil
})

// compile makes descriptors of the contract's table.
func compile(table string) (protoreflect.FileDescriptor, error) {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("aksnodeconfig/v1/config.proto"), Package: proto.String(packageName), Syntax: proto.String("proto3"),
	}
	enums := map[string]bool{}
	var message *descriptorpb.DescriptorProto
	for n, line := range strings.Split(table, "\n") {
		words := strings.Fields(line)
		var err error
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "enum":
			file.EnumType = append(file.EnumType, enum(words[1], words[2:]))
			enums[words[1]] = true
		case words[0] == "message":
			message = &descriptorpb.DescriptorProto{Name: proto.String(words[1])}
			file.MessageType = append(file.MessageType, message)
		default:
			err = addField(message, words, enums)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return protodesc.NewFile(file, nil)
}

func enum(name string, values []string) *descriptorpb.EnumDescriptorProto {
	e := &descriptorpb.EnumDescriptorProto{Name: proto.String(name)}
	for i, v := range values {
		e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{
			Name: proto.String(v), Number: proto.Int32(int32(i)), //nolint:gosec // a handful of values
		})
	}
	return e
}

// addField reads a field: number, name, type and properties.
func addField(m *descriptorpb.DescriptorProto, words []string, enums map[string]bool) error {
	number, err := strconv.ParseInt(words[0], 10, 32)
	if err != nil || len(words) < 3 {
		return fmt.Errorf("%q is no field", strings.Join(words, " "))
	}
	name := words[1]
	f := &descriptorpb.FieldDescriptorProto{
		Name: proto.String(name), Number: proto.Int32(int32(number)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		JsonName: proto.String(camel(name)),
	}
	if types, ok := strings.CutPrefix(words[2], "map<"); ok {
		key, value, _ := strings.Cut(strings.TrimSuffix(types, ">"), ",")
		entry := mapEntry(name, key, value, enums)
		m.NestedType = append(m.NestedType, entry)
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		f.TypeName = proto.String("." + packageName + "." + m.GetName() + "." + entry.GetName())
	} else {
		setType(f, words[2], enums)
	}
	for _, property := range words[3:] {
		switch {
		case property == "repeated":
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		case property == "optional":
			f.Proto3Optional = proto.Bool(true)
			f.OneofIndex = proto.Int32(int32(len(m.GetOneofDecl()))) //nolint:gosec // a few dozen fields
			m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + name)})
		case strings.HasPrefix(property, "json="):
			f.JsonName = proto.String(strings.TrimPrefix(property, "json="))
		default:
			return fmt.Errorf("property %q of field %s is unknown", property, name)
		}
	}
	m.Field = append(m.Field, f)
	return nil
}

// mapEntry is the message that stands for an entry of a map.
func mapEntry(field, key, value string, enums map[string]bool) *descriptorpb.DescriptorProto {
	whole := camel(field) + "Entry"
	entry := &descriptorpb.DescriptorProto{
		Name:    proto.String(strings.ToUpper(whole[:1]) + whole[1:]),
		Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
	}
	for i, typ := range []string{key, value} {
		name := []string{"key", "value"}[i]
		f := &descriptorpb.FieldDescriptorProto{
			Name: proto.String(name), Number: proto.Int32(int32(i + 1)), JsonName: proto.String(name),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		setType(f, typ, enums)
		entry.Field = append(entry.Field, f)
	}
	return entry
}

func setType(f *descriptorpb.FieldDescriptorProto, typ string, enums map[string]bool) {
	switch typ {
	case "string":
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
	case "bool":
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum()
	case "int32":
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_INT32.Enum()
	case "double":
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_DOUBLE.Enum()
	default:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		if enums[typ] {
			f.Type = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum()
		}
		f.TypeName = proto.String("." + packageName + "." + typ)
	}
}

// camel is the JSON name of a field: without underscores, each followed by a capital.
func camel(name string) string {
	var out strings.Builder
	for i, part := range strings.Split(name, "_") {
		if i > 0 && part != "" {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		out.WriteString(part)
	}
	return out.String()
}
