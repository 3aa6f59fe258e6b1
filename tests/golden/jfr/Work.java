import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.util.concurrent.locks.LockSupport;

/** A second of everything that a recording can hold: see README.md. */
public class Work {
    static final Object LOCK = new Object();
    static volatile Object kept;

    static long burn(long milliseconds) {
        long sum = 0, end = System.nanoTime() + milliseconds * 1_000_000;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                sum += i * sum + 1;
            }
        }
        return sum;
    }

    static void allocate() {
        for (int i = 0; i < 2000; i++) {
            kept = new byte[16 * 1024];
        }
        kept = new byte[4 << 20];
    }

    static void contend(long milliseconds) {
        synchronized (LOCK) {
            burn(milliseconds);
        }
    }

    static void park() {
        LockSupport.parkNanos(20_000_000);
    }

    static void await() throws InterruptedException {
        synchronized (LOCK) {
            LOCK.wait(30);
        }
    }

    static void readAndWrite() throws Exception {
        File file = File.createTempFile("work", null);
        try (FileOutputStream out = new FileOutputStream(file)) {
            out.write(new byte[12345]);
        }
        try (FileInputStream in = new FileInputStream(file)) {
            in.read(new byte[12345]);
        }
        file.delete();
    }

    static void fail() {
        try {
            throw new IllegalStateException("wanted");
        } catch (IllegalStateException e) {
            kept = e;
        }
    }

    public static void main(String[] args) throws Exception {
        Thread other = new Thread(() -> contend(100), "other");
        synchronized (LOCK) {
            other.start();
            burn(60);
        }
        other.join();
        burn(300);
        allocate();
        park();
        await();
        readAndWrite();
        for (int i = 0; i < 5; i++) {
            fail();
        }
    }
}
