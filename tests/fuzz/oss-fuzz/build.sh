#!/bin/bash -eu
# build.sh [TARGET...] -- builds the fuzz targets as OSS-Fuzz wants: programs, seed corpora, dictionaries and options in
# $OUT. The environment has $SRC/hearth, $WORK, $OUT, $CC, $CXX, $CFLAGS, $CXXFLAGS and $LIB_FUZZING_ENGINE.
shopt -s nullglob

fuzz=$SRC/hearth/tests/fuzz
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for source in "$fuzz"/fuzz_*.c; do
        name=${source##*/fuzz_}
        targets+=("${name%.c}")
    done
fi

# The machine that runs the programs lacks the libraries, so they lie beside them.
# shellcheck disable=SC2016 # the loader expands $ORIGIN
cmake -S "$SRC/hearth" -B "$WORK/hearth" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DHEARTH_FUZZ=ON -DHEARTH_UI=OFF \
    -DHEARTH_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DCMAKE_EXE_LINKER_FLAGS='-Wl,-rpath,\$ORIGIN/lib'
ninja -C "$WORK/hearth" "${targets[@]/#/fuzz_}"

mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
    program=$WORK/hearth/bin/fuzz_$target
    install -m 755 "$program" "$OUT/"
    # Not those of the C library, which belong to the loader of that machine.
    ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | { grep -vE '/(libc|libm|libgcc_s)\.so' || true; } |
        xargs -r cp -Lu -t "$OUT/lib"
    rm -f "$OUT/fuzz_${target}_seed_corpus.zip"
    zip -qj "$OUT/fuzz_${target}_seed_corpus.zip" "$fuzz/corpus/$target"/*
    cp "$fuzz/fuzz.options" "$OUT/fuzz_$target.options"
    [ ! -e "$fuzz/dictionaries/$target.dict" ] || cp "$fuzz/dictionaries/$target.dict" "$OUT/fuzz_$target.dict"
done
