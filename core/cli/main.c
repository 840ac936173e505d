/* main.c - the program. Everything else is in the library, where specs reach it. */
#include "cli/commands.h"

int main(int argc, char **argv)
{
        return lc_main(argc, argv);
}
