/* A function that the stand-in library offers to the world. */
#ifndef FABRIC_EXPORT_H
#define FABRIC_EXPORT_H

#define FABRIC_API __attribute__((visibility("default")))

#endif
