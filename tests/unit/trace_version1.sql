-- A trace as schema version 1 was written: three all-reduces of one of two ranks.
BEGIN TRANSACTION;
CREATE TABLE "clock"( /* pairs of readings that tie clocks together */
  "at_ns" INTEGER /* CLOCK_MONOTONIC since t0_ns, middle of the bracket */,
  "real_ns" INTEGER /* CLOCK_REALTIME then */,
  "device" INTEGER /* whose event was anchored at that moment; NULL: none */,
  "width_ns" INTEGER /* width of the bracket around the reading */
);
INSERT INTO "clock" VALUES(21508499,1795977686731104651,NULL,50);
INSERT INTO "clock" VALUES(21781469,1795977686731377596,0,15544);
INSERT INTO "clock" VALUES(577574024,1795977687287170186,NULL,70);
CREATE TABLE "comm"( /* each communicator that the process held */
  "id" INTEGER PRIMARY KEY /* number in this file */,
  "uid" INTEGER /* the same on every rank of the communicator */,
  "origin" TEXT /* init, init_all, split, ...; adopted: first seen in use */,
  "parent" INTEGER /* -> comm.id that it was made from */,
  "color" INTEGER /* colour given to split */,
  "child" INTEGER /* which child of its parent, from 1 */,
  "name" TEXT /* ncclConfig_t.commName */,
  "nranks" INTEGER,
  "rank" INTEGER /* of this process in it */,
  "device" INTEGER /* -> device.id */,
  "library" INTEGER /* -> library.id */,
  "enter_ns" INTEGER /* creation was asked for */,
  "ready_ns" INTEGER /* creation had returned */,
  "end_ns" INTEGER /* destroyed or aborted; NULL: not seen */
);
INSERT INTO "comm" VALUES(1,-5978880686317212988,'init',NULL,NULL,NULL,'0',2,0,0,1,16552861,16886827,67801595);
CREATE TABLE "comm_event"( /* what happened to a communicator besides ops */
  "comm" INTEGER /* -> comm.id */,
  "what" TEXT /* finalize, destroy, abort, error, register, ... */,
  "at_ns" INTEGER /* when the call was entered */,
  "host_ns" INTEGER /* how long it took */,
  "result" INTEGER /* ncclResult_t */
);
INSERT INTO "comm_event" VALUES(1,'register',19681656,60,0);
INSERT INTO "comm_event" VALUES(1,'deregister',67681436,311,0);
INSERT INTO "comm_event" VALUES(1,'destroy',67719733,81862,0);
CREATE TABLE "data_type"( /* ncclDataType_t */
  "id" INTEGER PRIMARY KEY,
  "name" TEXT,
  "bytes" INTEGER
);
INSERT INTO "data_type" VALUES(0,'int8',1);
INSERT INTO "data_type" VALUES(1,'uint8',1);
INSERT INTO "data_type" VALUES(2,'int32',4);
INSERT INTO "data_type" VALUES(3,'uint32',4);
INSERT INTO "data_type" VALUES(4,'int64',8);
INSERT INTO "data_type" VALUES(5,'uint64',8);
INSERT INTO "data_type" VALUES(6,'half',2);
INSERT INTO "data_type" VALUES(7,'float',4);
INSERT INTO "data_type" VALUES(8,'double',8);
INSERT INTO "data_type" VALUES(9,'bfloat16',2);
INSERT INTO "data_type" VALUES(10,'f8e4m3',1);
INSERT INTO "data_type" VALUES(11,'f8e5m2',1);
CREATE TABLE "device"( /* each GPU that the process used */
  "id" INTEGER PRIMARY KEY /* CUDA device ordinal in this process */,
  "uuid" TEXT /* GPU-..., as nvidia-smi prints it */,
  "pci" TEXT /* domain:bus:device.function, lower case */,
  "name" TEXT /* product name */,
  "cluster" TEXT /* NVLink fabric cluster uuid; NULL: none */,
  "clique" INTEGER /* NVLink fabric clique */,
  "source" TEXT /* nvml, driver, or why nothing is known */
);
INSERT INTO "device" VALUES(0,'GPU-b7371416-4c74-da3c-c9ec-326918571531','0000:10:00.0','Fabric H100',NULL,NULL,'nvml');
CREATE TABLE "flag"( /* bits of op.flags and launch.flags */
  "bit" INTEGER PRIMARY KEY,
  "name" TEXT,
  "meaning" TEXT
);
INSERT INTO "flag" VALUES(1,'event','timed by CUDA events around this call alone');
INSERT INTO "flag" VALUES(2,'group_time','timed with its whole group: see launch');
INSERT INTO "flag" VALUES(4,'grouped','issued between ncclGroupStart and ncclGroupEnd');
INSERT INTO "flag" VALUES(8,'in_place','send and receive buffer are the same');
INSERT INTO "flag" VALUES(16,'unsampled','left out of GPU timing by the policy');
INSERT INTO "flag" VALUES(32,'captured','captured into a CUDA graph, not launched');
INSERT INTO "flag" VALUES(64,'zero','count 0: NCCL launches nothing');
INSERT INTO "flag" VALUES(128,'in_call','the call had not returned');
INSERT INTO "flag" VALUES(256,'running','the GPU had not finished it');
INSERT INTO "flag" VALUES(512,'recovered','read from the ring of a dead process');
CREATE TABLE "gpu_link"( /* what a used GPU reaches on its own host */
  "device" INTEGER /* -> device.id */,
  "peer_pci" TEXT /* the other GPU; NULL: an NVSwitch */,
  "kind" TEXT /* nvlink, nvswitch, pcie, none */,
  "links" INTEGER /* number of NVLinks */,
  "version" INTEGER /* NVLink version */,
  "source" TEXT /* nvml or driver */
);
INSERT INTO "gpu_link" VALUES(0,NULL,'nvswitch',18,4,'nvml');
CREATE TABLE "launch"( /* what a group bracket launched: one row per group, communicator and stream; its ops share the interval */
  "id" INTEGER PRIMARY KEY /* in the numbering of op.id */,
  "grp" INTEGER /* -> op.grp */,
  "comm" INTEGER /* -> comm.id */,
  "stream" INTEGER,
  "ops" INTEGER /* ops of the group on comm and stream */,
  "enter_ns" INTEGER /* the outermost ncclGroupEnd was entered */,
  "host_ns" INTEGER /* how long it took; NULL: never returned */,
  "gpu_off_ns" INTEGER /* GPU start minus enter_ns; NULL: not timed */,
  "gpu_ns" INTEGER /* GPU duration */,
  "flags" INTEGER /* as op.flags */
);
CREATE TABLE "library"( /* each copy of NCCL that was called */
  "id" INTEGER PRIMARY KEY,
  "path" TEXT /* file */,
  "version" INTEGER /* as ncclGetVersion says */
);
INSERT INTO "library" VALUES(1,'/usr/lib/libnccl.so.2',22809);
CREATE TABLE "link_class"( /* link classes and what they do where nothing was measured */
  "id" INTEGER PRIMARY KEY,
  "name" TEXT,
  "network" INTEGER /* 1: leaves the NVLink domain and the node */,
  "base_us" REAL /* prior: latency of a call */,
  "hop_us" REAL /* prior: latency of each step of its algorithm */,
  "busbw_GBps" REAL /* prior: bus bandwidth, 1e9 bytes/s */,
  "source" TEXT /* where the prior is from */
);
INSERT INTO "link_class" VALUES(0,'self',0,6.6,0.0,1000.0,'copy inside one GPU; no public table');
INSERT INTO "link_class" VALUES(1,'NVLink',0,6.6,0.6,370.0,'NVLink 4, 450 GB/s line rate: NVIDIA/nccl issues 1442, 1455');
INSERT INTO "link_class" VALUES(2,'multi-node NVLink',0,6.6,0.6,720.0,'NVL72: coreweave/nccl-tests pull 43; NCCL''s constant 40.1 x 18 links');
INSERT INTO "link_class" VALUES(3,'PCIe',0,6.6,1.0,22.0,'PCIe 4 x16: NCCL''s constant 24, nccl-tests 20-24');
INSERT INTO "link_class" VALUES(4,'shared memory',0,6.6,1.0,6.0,'no P2P: NVIDIA/nccl-tests issue 307');
INSERT INTO "link_class" VALUES(5,'inside a node',0,6.6,0.6,370.0,'kind unknown: as NVLink 4');
INSERT INTO "link_class" VALUES(6,'InfiniBand',1,6.6,2.7,47.0,'NDR 400, one NIC per GPU: NVIDIA/nccl-tests issue 290');
INSERT INTO "link_class" VALUES(7,'RoCE',1,6.6,2.7,40.0,'400G, one NIC per GPU: NVIDIA/nccl issue 1221');
INSERT INTO "link_class" VALUES(8,'network',1,6.6,2.7,47.0,'kind unknown: as InfiniBand NDR');
INSERT INTO "link_class" VALUES(9,'TCP',1,38.0,2.7,2.4,'25G: NVIDIA/nccl issue 209, nccl-tests issue 82');
CREATE TABLE "loss"( /* what could not be recorded; the ops themselves ran */
  "cause" TEXT /* ring_full, event_pool, size_limit, write_error, ... */,
  "what" TEXT /* op, launch, comm, timing */,
  "comm" INTEGER /* -> comm.id; NULL: several */,
  "n" INTEGER /* how many */,
  "first_ns" INTEGER,
  "last_ns" INTEGER
);
CREATE TABLE "meta"( /* facts about the recording, by name */
  "key" TEXT /* name */,
  "value" TEXT /* value */
);
INSERT INTO "meta" VALUES('tool','commtrace 0.1.0');
INSERT INTO "meta" VALUES('schema','1');
INSERT INTO "meta" VALUES('ring_tail','25');
CREATE TABLE "op"( /* one row per NCCL communication call */
  "id" INTEGER PRIMARY KEY /* order of calls in the process */,
  "class" INTEGER /* -> op_class.id */,
  "ordinal" INTEGER /* collectives: nth of comm; send, recv: nth of comm, peer and direction; from 0, lost ones count */,
  "grp" INTEGER /* group bracket that it was issued in; NULL: none */,
  "enter_ns" INTEGER /* the call was entered */,
  "host_ns" INTEGER /* how long the call took; NULL: never returned */,
  "gpu_off_ns" INTEGER /* GPU start minus enter_ns; NULL: not timed here */,
  "gpu_ns" INTEGER /* GPU duration; in a group see launch */,
  "flags" INTEGER /* sum of flag.bit, plus 65536 * ncclResult_t */
);
INSERT INTO "op" VALUES(3,1,0,NULL,20776602,6940,8904,2013245,9);
INSERT INTO "op" VALUES(4,1,1,NULL,22993613,6320,8643,2012183,9);
INSERT INTO "op" VALUES(5,1,2,NULL,25158207,18748,8582,2017431,9);
CREATE TABLE "op_class"( /* what ops have in common; most of an op's facts */
  "id" INTEGER PRIMARY KEY,
  "comm" INTEGER /* -> comm.id */,
  "kind" INTEGER /* -> op_kind.id */,
  "type" INTEGER /* -> data_type.id */,
  "redop" INTEGER /* -> red_op.id; NULL: reduces nothing */,
  "count" INTEGER /* elements, as passed by the caller */,
  "peer" INTEGER /* peer or root, a rank of comm; NULL: none */,
  "stream" INTEGER /* the CUDA stream, as a number */,
  "site" INTEGER /* return address of the call */
);
INSERT INTO "op_class" VALUES(1,1,0,7,4,1000,NULL,0,139827860104403);
INSERT INTO "op_class" VALUES(2,1,0,7,0,1,NULL,0,139827860104403);
CREATE TABLE "op_kind"( /* NCCL calls by op_class.kind */
  "id" INTEGER PRIMARY KEY,
  "name" TEXT /* operation, as nccl-tests names it */,
  "function" TEXT,
  "base" INTEGER /* kind that it is an instance of */,
  "class" TEXT /* COLL, ROOTED, SEND, RECV, ONE_SIDED */,
  "size" TEXT /* message size: ONE_SHARE count * bytes of type, ALL_SHARES nranks times that */,
  "wire" TEXT /* busbw / algbw: UNIT 1, RING (n-1)/n, TWO_RING 2(n-1)/n */
);
INSERT INTO "op_kind" VALUES(0,'all_reduce','ncclAllReduce',0,'COLL','ONE_SHARE','TWO_RING');
INSERT INTO "op_kind" VALUES(1,'reduce_scatter','ncclReduceScatter',1,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(2,'all_gather','ncclAllGather',2,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(3,'broadcast','ncclBroadcast',3,'ROOTED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(4,'bcast','ncclBcast',3,'ROOTED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(5,'reduce','ncclReduce',5,'ROOTED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(6,'send','ncclSend',6,'SEND','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(7,'recv','ncclRecv',7,'RECV','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(8,'alltoall','ncclAlltoAll',8,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(9,'gather','ncclGather',9,'ROOTED','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(10,'scatter','ncclScatter',10,'ROOTED','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(11,'put_signal','ncclPutSignal',11,'ONE_SIDED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(12,'signal','ncclSignal',12,'ONE_SIDED','NO_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(13,'wait_signal','ncclWaitSignal',13,'ONE_SIDED','NO_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(14,'all_reduce','ncclAllReduceConfig',0,'COLL','ONE_SHARE','TWO_RING');
INSERT INTO "op_kind" VALUES(15,'reduce_scatter','ncclReduceScatterConfig',1,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(16,'all_gather','ncclAllGatherConfig',2,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(17,'broadcast','ncclBroadcastConfig',3,'ROOTED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(18,'reduce','ncclReduceConfig',5,'ROOTED','ONE_SHARE','UNIT');
INSERT INTO "op_kind" VALUES(19,'alltoall','ncclAlltoAllConfig',8,'COLL','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(20,'gather','ncclGatherConfig',9,'ROOTED','ALL_SHARES','RING');
INSERT INTO "op_kind" VALUES(21,'scatter','ncclScatterConfig',10,'ROOTED','ALL_SHARES','RING');
CREATE TABLE "policy"( /* what was timed on the GPU, whenever that changed */
  "at_ns" INTEGER /* from this moment on */,
  "timing" TEXT /* auto, all, off, sample */,
  "sample_shift" INTEGER /* one op in 2^shift is timed */
);
INSERT INTO "policy" VALUES(21508334,'auto',0);
CREATE TABLE "process"( /* the traced process; one row in a rank file */
  "uuid" TEXT /* random, unique to this process */,
  "host" TEXT /* host name: a label only, pods on one host differ */,
  "host_id" TEXT /* what makes a node: NCCL_HOSTID, else boot_id */,
  "boot_id" TEXT /* of the running kernel */,
  "pid" INTEGER /* as the process sees itself */,
  "pid_ns" INTEGER /* inode of its pid name space */,
  "start_ticks" INTEGER /* field 22 of /proc/PID/stat: with pid, unique */,
  "exe" TEXT /* path of the program */,
  "cmdline" TEXT /* arguments, separated by blanks */,
  "rank" INTEGER /* rank in the job as the launcher set it */,
  "rank_source" TEXT /* the variable that gave rank */,
  "world_size" INTEGER /* ranks of the job as the launcher set it */,
  "local_rank" INTEGER /* rank on the host as the launcher set it */,
  "run_id" TEXT /* common to all restarts of one launch */,
  "job_id" TEXT /* the batch system's job and step */,
  "restart" INTEGER /* restart count of the launcher (0: first try) */,
  "t0_ns" INTEGER /* CLOCK_MONOTONIC when recording began */,
  "t0_real_ns" INTEGER /* CLOCK_REALTIME at the same moment */,
  "end_ns" INTEGER /* when the trace was closed; NULL: still running, killed or crashed */
);
INSERT INTO "process" VALUES('00000000-0000-4000-8000-000000000001','node0','node0','b0',42,4026531836,1200397,'/usr/bin/python3','python3 train.py',0,'RANK',2,0,'run',NULL,1,12005540484713,1795977686709596167,577574499);
CREATE TABLE "red_op"( /* ncclRedOp_t; larger numbers are the program's own */
  "id" INTEGER PRIMARY KEY,
  "name" TEXT
);
INSERT INTO "red_op" VALUES(0,'sum');
INSERT INTO "red_op" VALUES(1,'prod');
INSERT INTO "red_op" VALUES(2,'max');
INSERT INTO "red_op" VALUES(3,'min');
INSERT INTO "red_op" VALUES(4,'avg');
CREATE VIEW v_op AS SELECT
  o.id, o.class, c.comm, m.name AS comm_name, m.uid, m.nranks, m.rank,
  k.name AS op, k.function, k.class AS op_class,
  coalesce(t.name, c.type) AS type, coalesce(r.name, c.redop) AS redop,
  c.count, c.peer, o.ordinal, o.grp, c.stream, c.site,
  CASE k.size WHEN 'ONE_SHARE' THEN c.count * t.bytes
    WHEN 'ALL_SHARES' THEN c.count * t.bytes * m.nranks
    ELSE 0 END AS bytes,
  o.enter_ns, p.t0_real_ns + o.enter_ns AS enter_unix_ns, o.host_ns,
  CASE WHEN o.flags & 2 THEN l.enter_ns + l.gpu_off_ns
    ELSE o.enter_ns + o.gpu_off_ns END AS gpu_start_ns,
  CASE WHEN o.flags & 2 THEN l.gpu_ns ELSE o.gpu_ns END AS gpu_ns,
  CASE WHEN o.flags & 2 AND l.gpu_ns IS NOT NULL THEN 'group'
    WHEN o.gpu_ns IS NOT NULL THEN 'event'
    ELSE 'host' END AS time_source,
  CASE WHEN o.flags >> 16 NOT IN (0, 7) THEN 'failed'
    WHEN o.flags & 128 THEN 'in call'
    WHEN o.flags & 256 THEN 'running'
    WHEN o.flags & 2 AND l.flags & 384 THEN 'running'
    ELSE 'done' END AS state,
  o.flags >> 16 AS result,
  (SELECT group_concat(f.name, ' ') FROM flag f
    WHERE o.flags & f.bit) AS flags
FROM op o JOIN op_class c ON c.id = o.class
  LEFT JOIN comm m ON m.id = c.comm
  LEFT JOIN op_kind k ON k.id = c.kind
  LEFT JOIN data_type t ON t.id = c.type
  LEFT JOIN red_op r ON r.id = c.redop
  LEFT JOIN launch l ON l.grp = o.grp AND l.comm = c.comm
    AND l.stream = c.stream
  CROSS JOIN process p;
CREATE VIEW v_comm AS SELECT
  m.id, m.uid, m.name, m.origin, m.nranks, m.rank, m.parent, m.color,
  m.child, m.device, d.name AS gpu, d.pci,
  m.enter_ns, m.ready_ns - m.enter_ns AS init_ns, m.end_ns,
  (SELECT count(*) FROM op o JOIN op_class c ON c.id = o.class
    WHERE c.comm = m.id) AS ops
FROM comm m LEFT JOIN device d ON d.id = m.device;
COMMIT;