/**
 * Burns processor time, allocates, and contends for a lock for some seconds; the agent of Pyroscope, which is given on the
 * command line, profiles it. Arguments: the server's URL and the application, which the agent has from its environment.
 */
public class Sdk {
    static final Object LOCK = new Object();
    static volatile Object kept;

    static long burnProcessor(long milliseconds) {
        long sum = 0, end = System.nanoTime() + milliseconds * 1_000_000;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                sum += i * sum + 1;
            }
        }
        return sum;
    }

    static void contend() {
        while (true) {
            synchronized (LOCK) {
                burnProcessor(20);
            }
        }
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 2; i++) {
            Thread thread = new Thread(Sdk::contend);
            thread.setDaemon(true);
            thread.start();
        }
        for (long end = System.currentTimeMillis() + 25_000; System.currentTimeMillis() < end;) {
            burnProcessor(20);
            for (int i = 0; i < 100; i++) {
                kept = new byte[64 * 1024];
            }
        }
        System.exit(0);
    }
}
