// Command proto makes the Go code of the protobuf messages in a folder: one .pb.go beside each .proto. It compiles and generates
// in this process, so that neither protoc nor a plugin need be installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/bufbuild/protocompile"
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: proto FOLDER PREFIX\n\nFiles import one another, and are registered in the process, as PREFIX/name.proto.")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "proto:", err)
		os.Exit(1)
	}
}

// run writes the Go code of every .proto file in folder.
func run(folder, prefix string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.proto"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no .proto files: name the folder that has them", folder)
	}
	var names []string
	for _, f := range files {
		names = append(names, path.Join(prefix, filepath.Base(f)))
	}
	slices.Sort(names)
	request, err := compile(folder, prefix, names)
	if err != nil {
		return err
	}
	return generate(folder, request)
}

// compile returns what protoc would hand to a plugin.
func compile(folder, prefix string, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	open := func(name string) (io.ReadCloser, error) {
		if path.Dir(name) != prefix {
			return nil, fmt.Errorf("%s: imports must be of %s: %w", name, prefix, os.ErrNotExist)
		}
		return os.Open(filepath.Join(folder, path.Base(name)))
	}
	c := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{Accessor: open},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments go into the code
	}
	files, err := c.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: names, Parameter: proto.String("paths=source_relative")}
	added := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) { // what a file imports comes before it
		if added[f.Path()] {
			return
		}
		added[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range files {
		add(f)
	}
	return request, nil
}

// generate does what protoc-gen-go does and writes the files.
func generate(folder string, request *pluginpb.CodeGeneratorRequest) error {
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return err
	}
	for _, f := range plugin.Files {
		gengo.GenerateFile(plugin, f) // none but those of the folder can be imported
	}
	response := plugin.Response()
	if response.Error != nil {
		return errors.New(response.GetError())
	}
	for _, f := range response.GetFile() {
		if err := os.WriteFile(filepath.Join(folder, path.Base(f.GetName())), []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
