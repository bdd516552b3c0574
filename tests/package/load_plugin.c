/* A host of the plug-in, as small as one can be: loads llama.cpp's libraries and then the plug-in by ggml's own loader,
 * which checks the version of its interface. Prints the name under which ggml has registered it.
 *
 *     load_plugin LIBGGML PLUGIN
 */
#include <dlfcn.h>
#include <stdio.h>

typedef void* (*load_function)(const char* path);
typedef const char* (*name_function)(void* registration);

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "load_plugin: %s\n", dlerror());
    return 1;
  }
  const load_function load = (load_function)dlsym(library, "ggml_backend_load");
  const name_function name = (name_function)dlsym(RTLD_DEFAULT, "ggml_backend_reg_name");
  if (load == NULL || name == NULL) {
    fprintf(stderr, "load_plugin: %s has no loader\n", argv[1]);
    return 1;
  }
  void* registration = load(argv[2]);
  if (registration == NULL) {
    fprintf(stderr, "load_plugin: ggml does not take %s\n", argv[2]);
    return 1;
  }
  puts(name(registration));
  return 0;
}
