/* hearthd.c -- hearthd. */
#include "lifecycle.h"

#include <stdlib.h>

extern char **environ;

int main(int argc, char **argv)
{
    return hearth_main(argc, argv, environ);
}
