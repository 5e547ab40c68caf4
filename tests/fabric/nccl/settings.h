/* What NCCL's log says of variables that it reads. */
#ifndef FABRIC_NCCL_SETTINGS_H
#define FABRIC_NCCL_SETTINGS_H

/* When they are read. */
enum setting_stage { SETTING_LIBRARY, SETTING_COMMUNICATOR };

void settings_announce(enum setting_stage stage);

#endif
