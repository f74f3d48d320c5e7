/* `broker OPERATION ARGS...`: see callers.c, metadata.c, sockets.c. Exits 1 and tells the errno where an operation as a whole fails. */
#include "broker.h"

static const struct {
	const char *name;
	int (*run)(char **);
} operations[] = {
	{"same", same}, {"outside", outside}, {"threads", threads}, {"storm", storm}, {"alarms", alarms}, {"killed", killed},
	{"vforked", vforked}, {"undumpable", undumpable}, {"race", race}, {"executes", executes}, {"tables", tables},
	{"repeat", repeat}, {"reach", reach}, {"serve-self", serve_self}, {"full", full}, {"interrupted", interrupted},
	{"pass-rights", pass_rights}, {"datagrams", datagrams}, {"datagram-self", datagram_self}, {"kinds", kinds}, {"table-socket", table_socket}, {"inet", inet},
	{"race-listen", race_listen},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc > 1 && i < sizeof operations / sizeof *operations; i++)
		if (strcmp(operations[i].name, argv[1]) == 0) {
			int result = operations[i].run(argv + 2);
			if (result < 0)
				printf("failed: %s\n", spell(errno));
			fflush(stdout);
			return result < 0;
		}
	return 2;
}
