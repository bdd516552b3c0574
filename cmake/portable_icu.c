/* Debian's libicuuc.a is compiled for programs, where these variables of the C library can be reached without the table
 * that shared libraries need. Only ICU's time zones read them, which nothing here uses. */
long __timezone;
char* tzname[2];
