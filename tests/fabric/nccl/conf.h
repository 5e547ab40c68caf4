/* NCCL's files of settings: NCCL_CONF_FILE or ~/.nccl.conf, then
 * /etc/nccl.conf. What they set goes into the environment, unless it is there.
 */
#ifndef FABRIC_NCCL_CONF_H
#define FABRIC_NCCL_CONF_H

/* Once a process. */
void conf_load(void);

#endif
