/* A library that only brings in others. */
int ways_root(void);

int ways_root(void)
{
    return 0;
}
