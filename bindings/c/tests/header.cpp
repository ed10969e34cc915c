// Tests that the header compiles as C++ and that the functions link with C names.

#include "tamis.h"

#include <cstdio>
#include <cstring>

int main() {
    static_assert(TAMIS_CODE_OK == 0, "success is zero");
    tamis_bound bound = {TAMIS_BOUND_KIND_UNBOUNDED, {nullptr, 0}};
    tamis_filter_builder *builder = nullptr;
    char *message = nullptr;
    if (bound.kind != 0 || tamis_filter_builder_new("blocked-bloom@10", 0, &builder, &message) != TAMIS_CODE_OK)
        return 1;
    tamis_filter_builder_free(builder);
    std::printf("tamis %s\n", tamis_version());
    return std::strlen(tamis_version()) > 0 ? 0 : 1;
}
