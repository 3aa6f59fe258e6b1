/*
 * test_symbol_parts.c -- class, package, directory and library of functions: the table of the
 * rules.
 */
#include "hearth/model/symbol_parts.h"

#include "synth_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct {
    const char *name, *file, *class_name, *package;
} g_table[] = {
    /* Go */
    {"main.main", "/app/main.go", "", "main"},
    {"net/http.(*conn).serve", "/usr/lib/go/src/net/http/server.go", "net/http.conn", "net/http"},
    {"net/http.HandlerFunc.ServeHTTP", "server.go", "net/http.HandlerFunc", "net/http"},
    {"net/http.(*conn).serve", "", "net/http.conn", "net/http"},
    {"github.com/a/b%2ev2.(*T).M", "", "github.com/a/b%2ev2.T", "github.com/a/b%2ev2"},
    {"github.com/BurntSushi/toml.Decode", "", "", "github.com/BurntSushi/toml"},
    {"github.com/a/b.F.func1", "", "", "github.com/a/b"},
    {"main.main.func1.2", "main.go", "", "main"},
    {"main.main.func1", "", "", "main"},
    {"main.T.M.func1", "", "main.T", "main"},
    {"main.(*T).M.func1", "", "main.T", "main"},
    {"main.(*T).M-fm", "", "main.T", "main"},
    {"main.(*Tree[go.shape.int]).Walk", "", "main.Tree", "main"},
    {"main.Tree[go.shape.struct { a/b.C }].Walk", "", "main.Tree", "main"},
    {"main.Map[go.shape.int,go.shape.string]", "main.go", "", "main"},
    {"main.Map[...].func1", "main.go", "", "main"},
    {"pkg.init.0", "a.go", "", "pkg"},
    {"pkg.glob..func1", "a.go", "", "pkg"},
    {"runtime.mallocgc", "", "", "runtime"},
    {"runtime.mcache.refill", "", "runtime.mcache", "runtime"},
    {"runtime.goexit", "/usr/lib/go/src/runtime/asm_amd64.s", "", "runtime"},
    {"runtime.systemstack.gowrap1", "", "", "runtime"},
    /* JVM */
    {"java.lang.Thread.run", "Thread.java", "java.lang.Thread", "java.lang"},
    {"java.lang.Thread.run", "", "java.lang.Thread", "java.lang"},
    {"java/lang/Thread.run", "", "java.lang.Thread", "java.lang"},
    {"java/lang/Thread.run:829", "Thread.java", "java.lang.Thread", "java.lang"},
    {"com.foo.Bar$Baz.<init>", "", "com.foo.Bar$Baz", "com.foo"},
    {"com/foo/Bar.lambda$run$0(Ljava/lang/String;)V", "", "com.foo.Bar", "com.foo"},
    {"com.foo.Bar$$Lambda$12/0x000000080.run", "", "com.foo.Bar", "com.foo"},
    {"com.foo.Bar$$Lambda.0x00007f10.run", "", "com.foo.Bar", "com.foo"},
    {"jdk.internal.LambdaForm$MH/0x0000.invoke", "", "jdk.internal.LambdaForm$MH", "jdk.internal"},
    {"void com.foo.Bar.baz(int)", "Bar.java", "com.foo.Bar", "com.foo"},
    {"void com.foo.Bar.baz(int)", "", "com.foo.Bar", "com.foo"},
    {"java.lang.String com.foo.Bar.baz(java.lang.String[], int)", "", "com.foo.Bar", "com.foo"},
    {"public static byte[] com.foo.Bar.<clinit>()", "Bar.java", "com.foo.Bar", "com.foo"},
    {"byte[] com.foo.Bar.baz(byte[])", "", "com.foo.Bar", "com.foo"},
    {"java.util.Map<a.b.C, d.E> com.foo.Bar.baz(int)", "Bar.java", "com.foo.Bar", "com.foo"},
    {"com.foo.BarTest.adds two numbers", "BarTest.kt", "com.foo.BarTest", "com.foo"},
    {"java.base/java.lang.Thread.run", "Thread.java", "java.lang.Thread", "java.lang"},
    {"java.base@17.0.2/java.lang.Thread.run", "", "java.lang.Thread", "java.lang"},
    {"app//com.foo.Bar.baz", "", "com.foo.Bar", "com.foo"},
    {"InputStream.read_[j]", "", "InputStream", ""},
    {"java/util/ArrayList.grow_[i]", "", "java.util.ArrayList", "java.util"},
    {"java/util/ArrayList:.grow_[j]", "", "java.util.ArrayList", "java.util"},
    {"Ljava/util/ArrayList;::grow", "", "java.util.ArrayList", "java.util"},
    {"tcp_v4_rcv_[k]", "", "", ""},
    {"Main.main", "Main.java", "Main", ""},
    {"Thread.run", "", "Thread", ""},
    {"kotlinx.coroutines.internal.scope.run", "", "kotlinx.coroutines.internal.scope",
     "kotlinx.coroutines.internal"},
    /* .NET */
    {"System.Threading!ThreadPool.Dispatch", "", "ThreadPool", "System.Threading"},
    {"app!My.Shop.Cart.Add(System.String)", "", "My.Shop.Cart", "app"},
    {"My.Shop.Cart..ctor", "Cart.cs", "My.Shop.Cart", "My.Shop"},
    {"My.List`1[[System.Int32, System.Private.CoreLib]].Add(!0)", "List.cs", "My.List`1", "My"},
    {"My.Linq.Select[[System.__Canon, System.Private.CoreLib]](int)", "L.cs", "My.Linq", "My"},
    {"lib!My.Shop+<>c.<Main>b__0_0(int)", "", "My.Shop+<>c", "lib"},
    {"class My.Shop.Item My.Shop.Cart.Add(int32)", "Cart.cs", "My.Shop.Cart", "My.Shop"},
    /* C++ */
    {"rocksdb::DBImpl::Get", "db_impl.cc", "rocksdb::DBImpl", ""},
    {"rocksdb::DBImpl::Get(rocksdb::ReadOptions const&, int)", "", "rocksdb::DBImpl", ""},
    {"std::vector<int, std::allocator<int> >::push_back(int&&)", "", "std::vector", ""},
    {"void std::__adjust_heap<char*, long>(char*, long)", "", "", ""},
    {"unsigned long ns::Hash<std::pair<a::b, c>>::operator()<int>(int) const", "", "ns::Hash", ""},
    {"ns::C::operator<(ns::C const&) const", "", "ns::C", ""},
    {"ns::C::operator std::string() const", "", "ns::C", ""},
    {"foo::foo()", "", "foo", ""},
    {"foo::~foo()", "", "foo", ""},
    {"foo::bar(int)", "", "", ""},
    {"Foo::bar", "", "Foo", ""},
    {"(anonymous namespace)::Pool::run()", "", "(anonymous namespace)::Pool", ""},
    {"ns::(anonymous namespace)::helper(int)", "", "", ""},
    {"ns::C::m(int)::{lambda(int)#1}::operator()(int) const", "", "ns::C", ""},
    {"a::B<decltype(x->y)>::m", "x.hpp", "a::B", ""},
    {"decltype(auto) a::B::visit<int>(int)", "", "a::B", ""},
    {"ns::C::m [clone .cold]", "", "ns::C", ""},
    {"v8::internal::Invoke(bool, v8::internal::Handle<v8::Object>)", "", "", ""},
    {"gc_event_hook_body.constprop.0", "", "", ""},
    {"vm_sendish.part.3", "libruby.so.3.2.3", "", ""},
    {"do_work.cold", "", "", ""},
    {"/usr/lib/libc-2.31.so", "", "", ""},
    {"malloc", "malloc.c", "", ""},
    {"malloc", "", "", ""},
    {"memcpy@plt", "", "", ""},
    /* Rust */
    {"tokio::runtime::Runtime::block_on", "runtime.rs", "tokio::runtime::Runtime", "tokio"},
    {"core::ptr::drop_in_place::h0123456789abcdef", "", "", "core"},
    {"core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "mod.rs", "", "core"},
    {"<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", "", "alloc::vec::Vec", "alloc"},
    {"_<alloc::vec::Vec<T> as core::ops::Drop>::drop::h0123456789abcdef", "", "alloc::vec::Vec",
     "alloc"},
    {"<&T as core::fmt::Debug>::fmt", "mod.rs", "T", "core"},
    {"<shop::Cart>::add", "cart.rs", "shop::Cart", "shop"},
    {"alloc::vec::Vec::<u8>::push", "vec.rs", "alloc::vec::Vec", "alloc"},
    {"shop::main::{{closure}}", "", "", "shop"},
    {"shop::Cart::add::{closure#0}::{closure#1}", "", "shop::Cart", "shop"},
    {"main", "main.rs", "", ""},
    /* Python */
    {"run", "/usr/lib/python3.11/threading.py", "", "threading"},
    {"Thread.run", "/usr/lib/python3.11/threading.py", "Thread", "threading"},
    {"Thread#run", "threading.py", "Thread", "threading"},
    {"get", "/v/lib/python3.9/site-packages/django/core/base.py", "", "django.core.base"},
    {"get", "/usr/lib/python3/dist-packages/yaml/__init__.py", "", "yaml"},
    {"handle", "/app/shop/cart.py", "", "app.shop.cart"},
    {"handle", "shop/cart.py", "", "shop.cart"},
    {"outer.<locals>.inner", "a.py", "", "a"},
    {"<module>", "a.py", "", "a"},
    {"_find_and_load", "<frozen importlib._bootstrap>", "", "importlib._bootstrap"},
    {"<lambda>", "<string>", "", ""},
    /* Ruby */
    {"Rack::Builder#call", "/g/gems/rack-2.2.3/lib/rack/builder.rb", "Rack::Builder", "rack"},
    {"block (2 levels) in Rack::Builder#call", "", "Rack::Builder", ""},
    {"Rack::Utils.parse", "/g/gems/rack-session-1.0/utils.rb", "Rack::Utils", "rack-session"},
    {"<main>", "app.rb", "", ""},
    /* PHP */
    {"App\\Http\\Kernel::handle", "Kernel.php", "App\\Http\\Kernel", "App\\Http"},
    {"App\\helper", "", "", "App"},
    {"strlen", "a.php", "", ""},
    {"standard|strlen", "", "", "standard"},
    {"Core|App\\Cart::add", "", "App\\Cart", "Core"},
    /* JavaScript */
    {"Server.emit", "node:events", "Server", "node:events"},
    {"Layer.handle [as handle_request]", "/app/node_modules/express/lib/layer.js", "Layer",
     "express"},
    {"f", "/a/node_modules/b/node_modules/@scope/c/index.mjs", "", "@scope/c"},
    {"async Cart.add", "/app/cart.ts", "Cart", ""},
    {"Object.<anonymous>", "/app/index.js", "Object", ""},
    {"LazyCompile:*Cart.add /app/cart.js:12:3", "", "Cart", ""},
    {"LazyCompile:_tickDomainCallback node.js:387", "", "", ""},
    {"Builtin:ArrayPrototypePush", "", "", ""},
    {"RegExp:\\bFoo ?Bar(?:/[\\d.]+)", "", "", ""},
    /* Julia */
    {"Alloc: GeometryBasics.HyperRectangle{2, Float32}", "nothing", "", ""},
    {"#Transformation#38", "/app/src/types.jl", "", ""},
    {"(::Makie.var\"#2#4\")(::Bool)", "Makie.jl", "", ""},
    /* unknown */
    {"", "", "", ""},
    {"libc.so.6+0x4f0", "", "", ""},
    {"0x4f0", "", "", ""},
    {".", "", "", ""},
    {"::", "", "", ""},
    {"<", "a.rs", "", ""},
    {"#", "", "", ""},
    {"!", "", "", ""},
    {"a.(*", "", "", "a"},
};

static void each_name_has_the_parts_of_its_language(void **state)
{
    (void)state;
    for (size_t i = 0; i < HEARTH_ARRAY_LEN(g_table); i++) {
        struct hearth_str name = hearth_str_c(g_table[i].name);
        struct hearth_str file = hearth_str_c(g_table[i].file);
        char room[512];
        struct hearth_str got = hearth_symbol_class(name, file, room);
        if (!hearth_str_eq_c(got, g_table[i].class_name)) {
            fail_msg("class of %s (%s): " HEARTH_STR_FMT, g_table[i].name, g_table[i].file,
                     HEARTH_STR_ARG(got));
        }
        got = hearth_symbol_package(name, file, room);
        if (!hearth_str_eq_c(got, g_table[i].package)) {
            fail_msg("package of %s (%s): " HEARTH_STR_FMT, g_table[i].name, g_table[i].file,
                     HEARTH_STR_ARG(got));
        }
    }
}

static void assert_directory(const char *file, const char *expected)
{
    struct hearth_str got = hearth_symbol_directory(hearth_str_c(file));
    assert_true(hearth_str_eq_c(got, expected));
}

static void directories_and_libraries_are_taken_from_paths(void **state)
{
    (void)state;
    assert_directory("/usr/lib/a.c", "/usr/lib");
    assert_directory("a.c", "");
    assert_directory("/a.c", "/");
    assert_directory("C:\\src\\a.cs", "C:\\src");
    assert_directory("", "");
    assert_directory("a/", "a");
    assert_true(hearth_str_eq_c(hearth_symbol_library(HEARTH_STR("/lib/libc.so.6")), "libc.so.6"));
    assert_true(hearth_str_eq_c(hearth_symbol_library(HEARTH_STR("[vdso]")), "[vdso]"));
    assert_true(hearth_str_eq_c(hearth_symbol_library(HEARTH_STR("")), ""));
}

static void assert_kind(const char *name, const char *file, const char *mapping,
                        const char *expected)
{
    struct hearth_str got =
        hearth_symbol_kind(hearth_str_c(name), hearth_str_c(file), hearth_str_c(mapping));
    if (!hearth_str_eq_c(got, expected)) {
        fail_msg("kind of %s (%s, %s): " HEARTH_STR_FMT, name, file, mapping, HEARTH_STR_ARG(got));
    }
}

static void the_kind_of_code_is_the_kernel_or_the_language(void **state)
{
    (void)state;
    assert_kind("tcp_v4_rcv", "", "[kernel.kallsyms]", "kernel");
    assert_kind("tcp_v4_rcv_[k]", "", "", "kernel");
    assert_kind("ext4_read", "", "/lib/modules/6.1/ext4.ko.xz", "kernel");
    assert_kind("", "", "[guest.kernel.kallsyms]", "kernel");
    assert_kind("memcpy", "", "/lib/libc.so.6", "native");
    assert_kind("", "", "/lib/libc.so.6", "native");
    assert_kind("work", "work.c", "", "native");
    assert_kind("rocksdb::DBImpl::Get", "db_impl.cc", "", "native");
    assert_kind("runtime.mallocgc", "malloc.go", "/app/shop", "go");
    assert_kind("com.foo.Bar.baz", "Bar.java", "", "jvm");
    assert_kind("InputStream.read_[j]", "", "", "jvm");
    assert_kind("System.Threading!ThreadPool.Dispatch", "", "", "dotnet");
    assert_kind("tokio::runtime::Runtime::block_on", "runtime.rs", "", "rust");
    assert_kind("run", "threading.py", "", "cpython");
    assert_kind("Rack::Builder#call", "", "", "ruby");
    assert_kind("App\\Cart::add", "Cart.php", "", "php");
    assert_kind("Server.emit", "node:events", "", "v8js");
    assert_kind("map", "base.jl", "", "");
    assert_kind("main", "", "", "");
    assert_kind("", "", "", "");
}

static const char *const g_pieces[] = {"a",
                                       "B",
                                       ".",
                                       "/",
                                       "::",
                                       "(",
                                       ")",
                                       "<",
                                       ">",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "#",
                                       "!",
                                       "\\",
                                       " as ",
                                       "(*",
                                       "func1",
                                       "$$Lambda",
                                       "/0x",
                                       "operator",
                                       "(anonymous namespace)",
                                       "decltype(",
                                       " ",
                                       "~",
                                       "::h0123456789abcdef",
                                       "_<",
                                       "&",
                                       "-",
                                       "/gems/",
                                       "-1",
                                       "node_modules/",
                                       "_[j]",
                                       "_[k]",
                                       "LazyCompile:*",
                                       "Stub:",
                                       ".part.3",
                                       ";::",
                                       "void ",
                                       "L",
                                       "`1[[",
                                       "|",
                                       "@1/",
                                       "@",
                                       "<frozen ",
                                       "/lib/python",
                                       "/site-packages/",
                                       ".py",
                                       ".go",
                                       ".rs",
                                       ".cc",
                                       ".rb",
                                       ".js",
                                       ".php",
                                       ".java"};

/* Hostile names: parts of the grammars of all languages in any order, in blocks of exact size. */
static void random_names_are_never_read_or_written_out_of_bounds(void **state)
{
    (void)state;
    uint64_t rng = 7;
    for (int round = 0; round < 200000; round++) {
        char text[2][256];
        struct hearth_str s[2];
        for (int t = 0; t < 2; t++) {
            size_t n = 0;
            for (uint32_t k = synth_below(&rng, 9); k > 0; k--) {
                const char *piece = g_pieces[synth_below(&rng, HEARTH_ARRAY_LEN(g_pieces))];
                n += (size_t)snprintf(text[t] + n, sizeof text[t] - n, "%s", piece);
            }
            char *exact = malloc(n > 0 ? n : 1);
            assert_non_null(exact);
            memcpy(exact, text[t], n);
            s[t] = hearth_str_n(exact, n);
        }
        char *room = malloc(HEARTH_SYMBOL_PART_BYTES(s[0], s[1]));
        assert_non_null(room);
        struct hearth_str parts[] = {hearth_symbol_class(s[0], s[1], room),
                                     hearth_symbol_package(s[0], s[1], room),
                                     hearth_symbol_directory(s[1]), hearth_symbol_library(s[1])};
        assert_non_null(hearth_symbol_kind(s[0], s[1], s[1]).p);
        for (size_t i = 0; i < HEARTH_ARRAY_LEN(parts); i++) {
            assert_true(parts[i].n < HEARTH_SYMBOL_PART_BYTES(s[0], s[1]));
            assert_non_null(parts[i].p);
        }
        free(room);
        free((void *)(uintptr_t)s[0].p);
        free((void *)(uintptr_t)s[1].p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_has_the_parts_of_its_language),
        cmocka_unit_test(directories_and_libraries_are_taken_from_paths),
        cmocka_unit_test(the_kind_of_code_is_the_kernel_or_the_language),
        cmocka_unit_test(random_names_are_never_read_or_written_out_of_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
