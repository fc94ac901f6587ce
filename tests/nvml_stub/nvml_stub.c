/* A stand-in for NVIDIA's libnvidia-ml.so.1: the calls that Berth, gpustat and nvitop make, answered
 * from one file that a test writes (control.py). Any number of processes may look at that file.
 *
 *   gcc -O2 -fPIC -shared -fvisibility=hidden -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml_stub.c
 *
 * BERTH_NVML_STUB_STATE names the file; it is looked up whenever the library is initialised and
 * nobody has it open. The structs below are mirrored in control.py, which also reads the list of
 * functions from this very text; sizes are compared at load time.
 *
 * Writers make `turn` odd, write, and make it even again (a seqlock), so no reader ever sees half
 * of a change. Counters are the other way round: only the library writes them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_CARDS 16
#define MAX_ROWS 128
#define MAX_SLICES 8
#define MAX_XIDS 32
#define MAX_TRACE 1024
#define NONE 0xFFFFFFFFu
#define FOREVER 0xFFFFFFFFu
#define MAGIC 0x4c4d564e48545242ull

enum {
  OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
  NO_DRIVER = 9, TIMEOUT = 10, WRONG_VERSION = 25, UNKNOWN = 999
};

/* Every function that is counted. control.py finds the names by this macro. */
#define FUNCTIONS(X)                                                                              \
  X(nvmlInitWithFlags) X(nvmlShutdown) X(nvmlSystemGetDriverVersion) X(nvmlSystemGetNVMLVersion)  \
  X(nvmlSystemGetCudaDriverVersion) X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2)     \
  X(nvmlDeviceGetHandleByPciBusId_v2) X(nvmlDeviceGetHandleByUUID) X(nvmlDeviceGetIndex)          \
  X(nvmlDeviceGetName) X(nvmlDeviceGetUUID) X(nvmlDeviceGetMinorNumber) X(nvmlDeviceGetPciInfo_v3) \
  X(nvmlDeviceGetMemoryInfo) X(nvmlDeviceGetMemoryInfo_v2)                                        \
  X(nvmlDeviceGetComputeRunningProcesses_v2) X(nvmlDeviceGetComputeRunningProcesses_v3)           \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2) X(nvmlDeviceGetGraphicsRunningProcesses_v3)         \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v2) X(nvmlDeviceGetMPSComputeRunningProcesses_v3)     \
  X(nvmlDeviceGetUtilizationRates) X(nvmlDeviceGetTemperature) X(nvmlDeviceGetTemperatureV)       \
  X(nvmlDeviceGetPowerUsage) X(nvmlDeviceGetEnforcedPowerLimit)                                   \
  X(nvmlDeviceGetPowerManagementLimit) X(nvmlDeviceGetFanSpeed) X(nvmlDeviceGetMigMode)           \
  X(nvmlDeviceGetMaxMigDeviceCount) X(nvmlDeviceGetMigDeviceHandleByIndex)                        \
  X(nvmlDeviceGetDeviceHandleFromMigDeviceHandle) X(nvmlDeviceIsMigDeviceHandle)                  \
  X(nvmlDeviceGetGpuInstanceId) X(nvmlDeviceGetComputeInstanceId) X(nvmlEventSetCreate)           \
  X(nvmlDeviceGetSupportedEventTypes) X(nvmlDeviceRegisterEvents) X(nvmlEventSetWait_v2)          \
  X(nvmlEventSetFree) X(nvmlOther)

#define AS_ENUM(name) F_##name,
enum { FUNCTIONS(AS_ENUM) FUNCTION_COUNT };

typedef struct {
  uint64_t used; /* bytes, or all ones: not available */
  uint32_t pid, kind, slice, unused; /* kind 0 compute, 1 graphics, 2 MPS; slice NONE: no MIG */
} Row;

typedef struct {
  char uuid[96];
  uint64_t total, reserved, used, free;
  uint32_t instance, compute_instance;
} Slice;

typedef struct {
  char uuid[96], product[96], pci[32];
  uint64_t total, reserved, used, free; /* bytes, reported as they stand */
  uint32_t error;         /* of every call that has this card's handle */
  uint32_t handle_error;  /* of looking the handle up */
  uint32_t memory_error;  /* of both memory calls */
  uint32_t delay_ms;      /* before every answer; FOREVER: until it is changed */
  uint32_t utilisation, temperature, power_mw, power_limit_mw, fan; /* NONE: not supported */
  uint32_t mig;           /* 0 off, 1 on, NONE: a card without MIG */
  uint32_t slice_count, row_count;
  uint32_t xid_count, unused;
  uint64_t xids[MAX_XIDS]; /* the last ones: xid n is at n modulo MAX_XIDS */
  Slice slices[MAX_SLICES];
  Row rows[MAX_ROWS];
} Card;

typedef struct {
  uint64_t magic, size, turn;
  uint32_t init_error, init_delay_ms; /* of nvmlInit */
  uint32_t session_error;             /* of every other call: a driver that went away */
  uint32_t card_count;
  char driver_version[96], library_version[96];
  int32_t cuda_version;
  uint32_t unused;
  uint32_t refusals[64];   /* by function: the code it answers with, 0 for none */
  uint64_t calls[64];      /* by function: how often it was called, by whomever */
  uint64_t trace_count;
  uint32_t trace[MAX_TRACE]; /* the last calls: function << 8 | card */
  Card cards[MAX_CARDS];
} State;

typedef void *Device;
typedef struct { uint32_t card, slice; } Where; /* slice NONE: the whole card */

static State *state;
static int open_sessions;
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT const uint64_t berth_stub_state_size = sizeof(State);

/* ---- reading the state ------------------------------------------------------------------ */

static void pause_ms(long ms) {
  struct timespec span = {ms / 1000, (ms % 1000) * 1000000L};
  nanosleep(&span, NULL);
}

/* Copy `size` bytes of the state as they were between two changes. A writer that died half way
 * must not hang its readers: what stands there is taken after two seconds. */
static void copy(void *to, const void *from, size_t size) {
  for (int tries = 0; tries < 2000; tries++) {
    uint64_t before = __atomic_load_n(&state->turn, __ATOMIC_ACQUIRE);
    if (!(before & 1)) {
      memcpy(to, from, size);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
      if (__atomic_load_n(&state->turn, __ATOMIC_RELAXED) == before) return;
    }
    if (tries < 100) sched_yield();
    else pause_ms(1);
  }
  memcpy(to, from, size);
}

static uint32_t word(const uint32_t *from) {
  uint32_t value;
  copy(&value, from, sizeof value);
  return value;
}

static void wait_as_told(const uint32_t *delay_ms) {
  uint32_t delay = word(delay_ms);
  if (delay != FOREVER && delay) pause_ms(delay);
  while (delay == FOREVER) {
    pause_ms(5);
    delay = word(delay_ms);
  }
}

static void count(unsigned function, uint32_t card) {
  __atomic_fetch_add(&state->calls[function], 1, __ATOMIC_RELAXED);
  uint64_t at = __atomic_fetch_add(&state->trace_count, 1, __ATOMIC_RELAXED);
  state->trace[at % MAX_TRACE] = function << 8 | (card & 0xFF);
}

/* What every call but nvmlInit begins with. */
static int begin(unsigned function, uint32_t card) {
  if (!state) return UNINITIALIZED;
  count(function, card);
  if (!open_sessions) return UNINITIALIZED;
  uint32_t refusal = word(&state->refusals[function]);
  return refusal ? (int)refusal : (int)word(&state->session_error);
}

static Device handle_of(uint32_t card, uint32_t slice) {
  return (Device)(uintptr_t)((card + 1) << 8 | (slice == NONE ? 0 : slice + 1));
}

static int find(Device device, Where *where) {
  uintptr_t handle = (uintptr_t)device;
  where->card = (uint32_t)(handle >> 8) - 1;
  where->slice = (handle & 0xFF) ? (uint32_t)(handle & 0xFF) - 1 : NONE;
  return handle >> 8 && state && where->card < word(&state->card_count) ? OK : INVALID;
}

/* What every call with a handle begins with. Fills `card` up to its rows. */
static int begin_on(unsigned function, Device device, Where *where, Card *card) {
  int found = find(device, where);
  int error = begin(function, found == OK ? where->card : 0xFF);
  if (error || found) return error ? error : found;
  const Card *here = &state->cards[where->card];
  wait_as_told(&here->delay_ms);
  copy(card, here, offsetof(Card, rows));
  return (int)card->error;
}

#define ON_CARD(function)                                           \
  Where where;                                                      \
  Card card;                                                        \
  int error = begin_on(F_##function, device, &where, &card);        \
  if (error) return error

static int text(char *to, unsigned size, const char *from) {
  if (strlen(from) >= size) return TOO_SMALL;
  strcpy(to, from);
  return OK;
}

static int figure(uint32_t value, unsigned *to) {
  if (value == NONE) return NOT_SUPPORTED;
  *to = value;
  return OK;
}

/* ---- sessions ---------------------------------------------------------------------------- */

static int map_state(void) {
  const char *path = getenv("BERTH_NVML_STUB_STATE");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return NO_DRIVER;
  struct stat facts;
  void *mapped = MAP_FAILED;
  if (!fstat(file, &facts) && facts.st_size == (off_t)sizeof(State))
    mapped = mmap(NULL, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED || ((State *)mapped)->magic != MAGIC) return UNKNOWN;
  if (state) munmap(state, sizeof(State));
  state = mapped;
  return OK;
}

EXPORT int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&session_lock);
  int error = open_sessions ? OK : map_state();
  if (!error) {
    count(F_nvmlInitWithFlags, 0xFF);
    wait_as_told(&state->init_delay_ms);
    error = (int)word(&state->init_error);
  }
  open_sessions += !error;
  pthread_mutex_unlock(&session_lock);
  return error;
}

EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT int nvmlShutdown(void) {
  pthread_mutex_lock(&session_lock);
  if (state) count(F_nvmlShutdown, 0xFF);
  int error = open_sessions ? OK : UNINITIALIZED;
  open_sessions -= !error;
  pthread_mutex_unlock(&session_lock);
  return error;
}

EXPORT const char *nvmlErrorString(int code) { return code ? "stub error" : "Success"; }

/* These two answer without a session too, as NVIDIA's do. */
EXPORT int nvmlSystemGetNVMLVersion(char *to, unsigned size) {
  if (!state) return UNINITIALIZED;
  count(F_nvmlSystemGetNVMLVersion, 0xFF);
  return text(to, size, state->library_version);
}

EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned size) {
  int error = begin(F_nvmlSystemGetDriverVersion, 0xFF);
  return error ? error : text(to, size, state->driver_version);
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *to) {
  int error = begin(F_nvmlSystemGetCudaDriverVersion, 0xFF);
  if (!error) *to = state->cuda_version;
  return error;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *to) { return nvmlSystemGetCudaDriverVersion(to); }

/* ---- which cards there are --------------------------------------------------------------- */

EXPORT int nvmlDeviceGetCount_v2(unsigned *to) {
  int error = begin(F_nvmlDeviceGetCount_v2, 0xFF);
  if (!error) *to = word(&state->card_count);
  return error;
}

/* A lost card has no handle: looking it up is answered with its error. */
static int look_up(uint32_t card, uint32_t slice, Device *to) {
  const Card *here = &state->cards[card];
  wait_as_told(&here->delay_ms);
  uint32_t error = word(&here->handle_error);
  if (!error) error = word(&here->error);
  if (!error) *to = handle_of(card, slice);
  return (int)error;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *to) {
  int error = begin(F_nvmlDeviceGetHandleByIndex_v2, index);
  if (error) return error;
  return index < word(&state->card_count) ? look_up(index, NONE, to) : INVALID;
}

/* Read `domain:bus:device.function`, `domain:bus:device` or `bus:device.function`. */
static int parse_pci(const char *written, unsigned found[4]) {
  unsigned a, b, c, d = 0;
  int end = 0, fields = sscanf(written, "%x:%x:%x%n.%x%n", &a, &b, &c, &end, &d, &end);
  if (fields >= 3 && !written[end]) {
    unsigned all[4] = {a, b, c, fields == 4 ? d : 0};
    memcpy(found, all, sizeof all);
    return OK;
  }
  d = 0;
  fields = sscanf(written, "%x:%x%n.%x%n", &b, &c, &end, &d, &end);
  unsigned short_form[4] = {0, b, c, fields == 3 ? d : 0};
  memcpy(found, short_form, sizeof short_form);
  return fields >= 2 && !written[end] ? OK : INVALID;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *written, Device *to) {
  int error = begin(F_nvmlDeviceGetHandleByPciBusId_v2, 0xFF);
  unsigned wanted[4], has[4];
  if (error || parse_pci(written, wanted)) return error ? error : INVALID;
  for (uint32_t i = 0; i < word(&state->card_count); i++)
    if (!parse_pci(state->cards[i].pci, has) && !memcmp(wanted, has, sizeof has))
      return look_up(i, NONE, to);
  return NOT_FOUND;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, Device *to) {
  int error = begin(F_nvmlDeviceGetHandleByUUID, 0xFF);
  if (error) return error;
  for (uint32_t i = 0; i < word(&state->card_count); i++) {
    const Card *card = &state->cards[i];
    if (!strcmp(card->uuid, uuid)) return look_up(i, NONE, to);
    for (uint32_t slice = 0; card->mig == 1 && slice < card->slice_count; slice++)
      if (!strcmp(card->slices[slice].uuid, uuid)) return look_up(i, slice, to);
  }
  return NOT_FOUND;
}

EXPORT int nvmlDeviceGetIndex(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceGetIndex);
  *to = where.card;
  return OK;
}

EXPORT int nvmlDeviceGetName(Device device, char *to, unsigned size) {
  ON_CARD(nvmlDeviceGetName);
  return text(to, size, card.product);
}

EXPORT int nvmlDeviceGetUUID(Device device, char *to, unsigned size) {
  ON_CARD(nvmlDeviceGetUUID);
  return text(to, size, where.slice == NONE ? card.uuid : card.slices[where.slice].uuid);
}

EXPORT int nvmlDeviceGetMinorNumber(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceGetMinorNumber);
  *to = where.card;
  return OK;
}

typedef struct {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
} Pci;

EXPORT int nvmlDeviceGetPciInfo_v3(Device device, Pci *to) {
  ON_CARD(nvmlDeviceGetPciInfo_v3);
  unsigned at[4];
  if (parse_pci(card.pci, at)) return UNKNOWN;
  memset(to, 0, sizeof *to);
  to->domain = at[0], to->bus = at[1], to->device = at[2], to->device_id = 0x268410deu;
  snprintf(to->short_id, sizeof to->short_id, "%04X:%02X:%02X.%X", at[0] & 0xFFFF, at[1] & 0xFF,
           at[2] & 0x1F, at[3] & 7);
  snprintf(to->id, sizeof to->id, "%08X:%02X:%02X.%X", at[0], at[1], at[2], at[3]);
  return OK;
}

/* ---- memory and processes ---------------------------------------------------------------- */

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } MemoryV2;
#define MEMORY_V2 0x02000028u

/* Version 1 counts what the driver reserved as used. */
EXPORT int nvmlDeviceGetMemoryInfo(Device device, Memory *to) {
  ON_CARD(nvmlDeviceGetMemoryInfo);
  if (card.memory_error) return (int)card.memory_error;
  const Slice *slice = where.slice == NONE ? NULL : &card.slices[where.slice];
  to->total = slice ? slice->total : card.total;
  to->free = slice ? slice->free : card.free;
  to->used = slice ? slice->used + slice->reserved : card.used + card.reserved;
  return OK;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2 *to) {
  ON_CARD(nvmlDeviceGetMemoryInfo_v2);
  if (card.memory_error) return (int)card.memory_error;
  if (to->version != MEMORY_V2) return WRONG_VERSION;
  const Slice *slice = where.slice == NONE ? NULL : &card.slices[where.slice];
  to->total = slice ? slice->total : card.total;
  to->reserved = slice ? slice->reserved : card.reserved;
  to->free = slice ? slice->free : card.free;
  to->used = slice ? slice->used : card.used;
  return OK;
}

typedef struct {
  unsigned pid;
  unsigned long long used;
  unsigned instance, compute_instance;
} Process;

static int processes(unsigned function, uint32_t kind, Device device, unsigned *size, Process *to) {
  Where where;
  static __thread Card card;
  int error = begin_on(function, device, &where, &card);
  if (error) return error;
  copy(&card, &state->cards[where.card], sizeof card);
  unsigned found = 0, room = to ? *size : 0;
  for (uint32_t i = 0; i < card.row_count && i < MAX_ROWS; i++) {
    const Row *row = &card.rows[i];
    if (row->kind != kind || (where.slice != NONE && row->slice != where.slice)) continue;
    if (found < room) {
      const Slice *slice = row->slice == NONE ? NULL : &card.slices[row->slice % MAX_SLICES];
      to[found] = (Process){row->pid, row->used, slice ? slice->instance : NONE,
                            slice ? slice->compute_instance : NONE};
    }
    found++;
  }
  *size = found;
  return found <= room ? OK : TOO_SMALL;
}

#define PROCESS_CALL(name, kind)                                       \
  EXPORT int name(Device device, unsigned *size, Process *to) {        \
    return processes(F_##name, kind, device, size, to);                \
  }
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v2, 0)
PROCESS_CALL(nvmlDeviceGetComputeRunningProcesses_v3, 0)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v2, 1)
PROCESS_CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)
PROCESS_CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)

/* The window of the bus into the memory: nvitop cannot draw a slice without it. */
EXPORT int nvmlDeviceGetBAR1MemoryInfo(Device device, Memory *to) {
  ON_CARD(nvmlOther);
  *to = (Memory){256ull << 20, 248ull << 20, 8ull << 20};
  return OK;
}

/* ---- load and heat ----------------------------------------------------------------------- */

typedef struct { unsigned card, memory; } Utilisation;

EXPORT int nvmlDeviceGetUtilizationRates(Device device, Utilisation *to) {
  ON_CARD(nvmlDeviceGetUtilizationRates);
  to->memory = 0;
  return figure(card.utilisation, &to->card);
}

EXPORT int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *to) {
  ON_CARD(nvmlDeviceGetTemperature);
  return sensor ? INVALID : figure(card.temperature, to);
}

typedef struct { unsigned version, sensor, temperature; } TemperatureV;

EXPORT int nvmlDeviceGetTemperatureV(Device device, TemperatureV *to) {
  ON_CARD(nvmlDeviceGetTemperatureV);
  return to->version == 0x100000C ? figure(card.temperature, &to->temperature) : WRONG_VERSION;
}

#define FIGURE_CALL(name, field)                          \
  EXPORT int name(Device device, unsigned *to) {          \
    ON_CARD(name);                                        \
    return figure(card.field, to);                        \
  }
FIGURE_CALL(nvmlDeviceGetPowerUsage, power_mw)
FIGURE_CALL(nvmlDeviceGetEnforcedPowerLimit, power_limit_mw)
FIGURE_CALL(nvmlDeviceGetPowerManagementLimit, power_limit_mw)
FIGURE_CALL(nvmlDeviceGetFanSpeed, fan)

#define FIXED_CALL(name, value)                           \
  EXPORT int name(Device device, unsigned *to) {          \
    ON_CARD(nvmlOther);                                   \
    *to = (value);                                        \
    return OK;                                            \
  }
FIXED_CALL(nvmlDeviceGetPerformanceState, 8)
FIXED_CALL(nvmlDeviceGetPersistenceMode, 1)
FIXED_CALL(nvmlDeviceGetComputeMode, 0)
FIXED_CALL(nvmlDeviceGetDisplayActive, 0)
FIXED_CALL(nvmlDeviceGetDisplayMode, 0)

#define CODEC_CALL(name)                                          \
  EXPORT int name(Device device, unsigned *to, unsigned *period) { \
    ON_CARD(nvmlOther);                                           \
    *to = 0, *period = 100000;                                    \
    return OK;                                                    \
  }
CODEC_CALL(nvmlDeviceGetEncoderUtilization)
CODEC_CALL(nvmlDeviceGetDecoderUtilization)

/* Present and not supported: tools take the absence of the symbol for an old driver and misread
 * what comes next (nvitop picks another process struct without the last of these). */
#define REFUSING_CALL(name) \
  EXPORT int name(Device device, ...) { (void)device; return NOT_SUPPORTED; }
REFUSING_CALL(nvmlDeviceGetEccMode)
REFUSING_CALL(nvmlDeviceGetTotalEccErrors)
REFUSING_CALL(nvmlDeviceGetProcessUtilization)
REFUSING_CALL(nvmlDeviceGetDriverModel)
REFUSING_CALL(nvmlDeviceGetDriverModel_v2)
REFUSING_CALL(nvmlDeviceGetConfComputeMemSizeInfo)
REFUSING_CALL(nvmlDeviceGetClockInfo)
REFUSING_CALL(nvmlDeviceGetMaxClockInfo)
REFUSING_CALL(nvmlDeviceGetPcieThroughput)
REFUSING_CALL(nvmlDeviceGetSerial)
REFUSING_CALL(nvmlDeviceGetCudaComputeCapability)
REFUSING_CALL(nvmlDeviceGetFieldValues)
REFUSING_CALL(nvmlDeviceGetRunningProcessDetailList)

/* ---- slices of a card (MIG) -------------------------------------------------------------- */

EXPORT int nvmlDeviceGetMigMode(Device device, unsigned *now, unsigned *pending) {
  ON_CARD(nvmlDeviceGetMigMode);
  *now = *pending = card.mig;
  return card.mig == NONE ? NOT_SUPPORTED : OK;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceGetMaxMigDeviceCount);
  *to = card.mig == NONE ? 0 : MAX_SLICES;
  return OK;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *to) {
  ON_CARD(nvmlDeviceGetMigDeviceHandleByIndex);
  if (card.mig != 1 || index >= card.slice_count) return NOT_FOUND;
  *to = handle_of(where.card, index);
  return OK;
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device device, Device *to) {
  ON_CARD(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
  *to = handle_of(where.card, NONE);
  return where.slice == NONE ? INVALID : OK;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceIsMigDeviceHandle);
  *to = where.slice != NONE;
  return OK;
}

EXPORT int nvmlDeviceGetGpuInstanceId(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceGetGpuInstanceId);
  if (where.slice == NONE) return NOT_SUPPORTED;
  *to = card.slices[where.slice].instance;
  return OK;
}

EXPORT int nvmlDeviceGetComputeInstanceId(Device device, unsigned *to) {
  ON_CARD(nvmlDeviceGetComputeInstanceId);
  if (where.slice == NONE) return NOT_SUPPORTED;
  *to = card.slices[where.slice].compute_instance;
  return OK;
}

/* ---- events: Xids, each told once to each set -------------------------------------------- */

#define XID_EVENT 0x8ull
typedef struct { uint8_t watches[MAX_CARDS]; uint32_t seen[MAX_CARDS]; } EventSet;
typedef struct {
  Device device;
  unsigned long long type, data;
  unsigned instance, compute_instance;
} Event;

EXPORT int nvmlEventSetCreate(EventSet **to) {
  int error = begin(F_nvmlEventSetCreate, 0xFF);
  if (!error) *to = calloc(1, sizeof **to);
  return error;
}

EXPORT int nvmlDeviceGetSupportedEventTypes(Device device, unsigned long long *to) {
  ON_CARD(nvmlDeviceGetSupportedEventTypes);
  *to = XID_EVENT;
  return OK;
}

EXPORT int nvmlDeviceRegisterEvents(Device device, unsigned long long types, EventSet *set) {
  ON_CARD(nvmlDeviceRegisterEvents);
  if (types & ~XID_EVENT) return NOT_SUPPORTED;
  set->watches[where.card] = 1;
  set->seen[where.card] = card.xid_count;
  return OK;
}

static int next_event(EventSet *set, Event *to) {
  for (uint32_t i = 0; i < MAX_CARDS; i++) {
    const Card *card = &state->cards[i];
    if (!set->watches[i] || set->seen[i] == word(&card->xid_count)) continue;
    *to = (Event){handle_of(i, NONE), XID_EVENT, 0, NONE, NONE};
    copy(&to->data, &card->xids[set->seen[i] % MAX_XIDS], sizeof to->data);
    set->seen[i]++;
    return OK;
  }
  return TIMEOUT;
}

EXPORT int nvmlEventSetWait_v2(EventSet *set, Event *to, unsigned timeout_ms) {
  int error = begin(F_nvmlEventSetWait_v2, 0xFF);
  if (error) return error;
  for (unsigned waited = 0;; waited++) {
    if (!next_event(set, to)) return OK;
    if (waited >= timeout_ms) return TIMEOUT;
    pause_ms(1);
  }
}

EXPORT int nvmlEventSetFree(EventSet *set) {
  int error = begin(F_nvmlEventSetFree, 0xFF);
  if (!error) free(set);
  return error;
}
